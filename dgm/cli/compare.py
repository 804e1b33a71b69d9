"""``dgm compare``: compare several runs on one suite, in pairs and as curves."""

from pathlib import Path

import click

from dgm.archive.durable import write_durably
from dgm.cli.arguments import as_json
from dgm.cli.compare_rows import comparison_lines
from dgm.cli.output import emit_json
from dgm.comparison.comparing import RunComparison, compare_runs
from dgm.report.targets import check_file
from dgm.show.spans import make_line
from dgm.show.terminal import write_lines


@click.command()
@click.argument("run_names", metavar="RUN...", nargs=-1, required=True)
@click.option(
    "--group-by",
    metavar="SETTING",
    help="Pair runs of the same seed by this setting, such as policy (default for a sweep: its variants).",
)
@click.option("--svg", type=click.Path(path_type=Path), metavar="FILE", help="Draw the curves.")
@click.option("--csv", type=click.Path(path_type=Path), metavar="FILE", help="Write the curves as a table.")
@as_json
def compare(
    run_names: tuple[str, ...], group_by: str | None, svg: Path | None, csv: Path | None, as_json: bool
) -> None:
    """Compare runs: what each came to, paired differences with intervals, curves of the best agent.

    RUN is a run, the name of a sweep (all its runs) or a pattern such as 'policies-*'. Without groups each run is
    compared with the first one task by task; with groups, each group with the first, seed by seed.
    """
    for option, file in (("--svg", svg), ("--csv", csv)):
        if file is not None:
            check_file(file, option)
    found = compare_runs(run_names, group_by)
    written = _write_files(found, svg, csv)
    if as_json:
        emit_json(found.record())
        return
    write_lines(comparison_lines(found.subjects, found.grouping, found.tasks, found.seeds, found.notes))
    write_lines(map(make_line, written))


def _write_files(found: RunComparison, svg: Path | None, csv: Path | None) -> list[str]:
    """Write the requested files; return a line on the place of each."""
    said = []
    if svg is not None:
        write_durably(svg, found.draw_curves())
        said.append(f"curves of {len(found.subjects)} runs are drawn in {svg}")
    if csv is not None:
        data, rows = found.write_curves()
        write_durably(csv, data)
        said.append(f"{rows:,} rows of their curves are in {csv}")
    return said
