"""``dgm compare``: compare several runs on one suite, in pairs and as curves."""

from collections.abc import Sequence
from pathlib import Path

import click

from dgm.archive.durable import write_durably
from dgm.archive.run import Run
from dgm.cli.arguments import as_json
from dgm.cli.compare_rows import comparison_lines, comparison_notes
from dgm.cli.output import emit_json
from dgm.comparison.curves import CurveGroup, curve_csv, curve_picture
from dgm.comparison.grouping import VARIANT, Grouping, group
from dgm.comparison.pairs import pair_seeds, pair_tasks
from dgm.comparison.record import comparison_record
from dgm.comparison.subjects import ComparedRun, check_comparable, read_subject
from dgm.errors import UserError
from dgm.experiments.naming import NamedRuns, find_runs
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
    named = find_runs(run_names)
    subjects = _read_subjects(named)
    check_comparable(subjects)
    grouping = _choose_grouping(named, subjects, group_by)
    tasks = [] if grouping else pair_tasks(subjects)
    seeds = pair_seeds(grouping) if grouping else []
    notes = comparison_notes(named, subjects, grouping)
    written = _write_files(subjects, grouping, svg, csv)
    if as_json:
        emit_json(comparison_record(subjects, grouping, tasks, seeds, notes))
        return
    write_lines(comparison_lines(subjects, grouping, tasks, seeds, notes))
    write_lines(map(make_line, written))


def _read_subjects(named: NamedRuns) -> Sequence[ComparedRun]:
    if not named.runs:
        raise UserError(f"none of these runs was begun yet: {', '.join(named.not_begun)}")
    subjects = []
    for each in named.runs:
        with Run.open(each.folder) as run:
            subjects.append(read_subject(run, each.variant))
    return subjects


def _choose_grouping(named: NamedRuns, subjects: Sequence[ComparedRun], by: str | None) -> Grouping | None:
    """Return the requested groups; by default, the variants of sweeps that have several."""
    if by is None:
        variants = {each.variant for each in named.runs}
        if None in variants or len(variants) < 2:
            return None
        by = VARIANT
    return group(subjects, by)


def _write_files(
    subjects: Sequence[ComparedRun], grouping: Grouping | None, svg: Path | None, csv: Path | None
) -> list[str]:
    """Write the requested files; return a line on the place of each."""
    groups = grouping.groups if grouping else {subject.name: [subject] for subject in subjects}
    drawn = [CurveGroup(name, members) for name, members in groups.items()]
    said = []
    if svg is not None:
        about = "; ".join(str(subject.identity) for subject in subjects)
        write_durably(svg, curve_picture(drawn).file(about))
        said.append(f"curves of {len(subjects)} runs are drawn in {svg}")
    if csv is not None:
        data, rows = curve_csv(drawn, grouped=grouping is not None)
        write_durably(csv, data)
        said.append(f"{rows:,} rows of their curves are in {csv}")
    return said
