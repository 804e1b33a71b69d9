"""``dgm benchmark draw``: a subset of SWE-bench with the composition of the whole."""

import sys
from pathlib import Path

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json
from dgm.errors import UserError


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
    from dgm.benchmarks import swebench_subsets as subsets
    from dgm.benchmarks.swebench_instances import load

    kind, _, which = name.partition(":")
    if kind != "swebench" or not which:
        raise UserError(
            f"{name}: subsets are drawn of SWE-bench only; write swebench:verified or swebench:FILE"
        )
    if file.exists():
        raise UserError(f"{file}: is there already; give another name")
    drawn = subsets.draw(load(which), search, holdout, seed)
    try:
        file.write_text(subsets.text(drawn), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror or error}") from error
    parts = {split.value: list(tasks) for split, tasks in drawn.parts.items()}
    if as_json:
        emit_json({"file": str(file), "source": drawn.source, "parts": parts})
        return
    counts = ", ".join(f"{split} {len(tasks)}" for split, tasks in parts.items())
    sys.stdout.write(f"{file}: {counts}; use it with --set benchmarks.swebench.subset={file}\n")
