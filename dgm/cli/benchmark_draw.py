"""``dgm benchmark draw``: a subset of SWE-bench with the composition of the whole."""

import sys
from pathlib import Path

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json


@click.command()
@click.argument("name", metavar="swebench:…")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--search", type=click.IntRange(1), required=True, help="Instances to search on.")
@click.option(
    "--holdout", type=click.IntRange(0), default=0, show_default=True, help="Instances to hold out."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Number that the choice follows from.")
@as_json
def draw(name: str, file: Path, search: int, holdout: int, seed: int, as_json: bool) -> None:
    """Draw instances by repository and difficulty, and write them to FILE, a subset file.

    Use it with --set benchmarks.swebench.subset=FILE.
    """
    from dgm.sessions.subsets import draw_subset

    drawn = draw_subset(name, file, search, holdout, seed)
    parts = {split.value: list(tasks) for split, tasks in drawn.parts.items()}
    if as_json:
        emit_json({"file": str(file), "source": drawn.source, "parts": parts})
        return
    counts = ", ".join(f"{split} {len(tasks)}" for split, tasks in parts.items())
    sys.stdout.write(f"{file}: {counts}; use it with --set benchmarks.swebench.subset={file}\n")
