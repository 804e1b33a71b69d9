"""``dgm benchmark``: the benchmarks that agents are evaluated on, and suites of the user's own."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from dgm.api import mining, suites
from dgm.cli.app import derive
from dgm.render import fmt
from dgm.render.safe import neutralise, one_line
from dgm.views.suite import (
    IN_IMAGE,
    FetchView,
    MadeSuiteView,
    MiningView,
    OriginView,
    SuiteListView,
    SuiteView,
    TaskRow,
    TaskView,
    VerificationView,
)

FILES_SHOWN, IMAGES_SHOWN, TAGS_SHOWN, TESTS_SHOWN, REASONS_SHOWN = 60, 12, 24, 12, 12
NAME_CELLS, MODULE_CELLS, LINE_CELLS = 60, 50, 300
HEADS = ("task", "kind", "day", "F2P", "P2P", "lines", "module")
NUMBERS = ("F2P", "P2P", "lines")
Lines = Iterator[str]


def _print(lines: Callable[[Any], Lines]) -> Callable[[Any], None]:
    return lambda view: sys.stdout.writelines(f"{line}\n" for line in lines(view))


def _list_lines(view: SuiteListView) -> Lines:
    for suite in view.suites:
        yield f"{suite.name:<14} {_counts_text(suite.tasks)}"
        yield f"{'':<14} {neutralise(suite.description)}"
    for plugin in view.plugins:
        yield f"{plugin.name:<14} plug-in of {plugin.package}"
    yield "\nother names:"
    for form in view.named:
        yield f"  {form.form:<48} {form.meaning}"


def _show_lines(view: SuiteView | TaskView) -> Lines:
    return _suite_lines(view) if isinstance(view, SuiteView) else _task_lines(view)


def _suite_lines(view: SuiteView) -> Lines:
    yield f"{neutralise(view.name)}, version {view.version[:12]}"
    if view.description:
        yield neutralise(view.description)
    has_origins = any(row.date or row.fail_to_pass for row in view.facts)
    for split, ids in view.ids.items():
        yield f"\n{split}: {fmt.count(len(ids), 'task')}"
        rows = [row for row in view.facts if row.split == split]
        lines = _table(rows) if rows and has_origins else map(neutralise, ids)
        yield from (f"  {line}" for line in lines)
    yield from _count_lines("tags", [(tag, f"{count}") for tag, count in view.tags.items()], TAGS_SHOWN)
    images = [(row.image, f"{fmt.count(row.tasks, 'task')}, {row.state}") for row in view.images]
    yield from _count_lines("images", images, IMAGES_SHOWN)
    for problem in view.left_out:
        yield f"left out: {one_line(problem, LINE_CELLS)}"


def _table(rows: Sequence[TaskRow]) -> Lines:
    """Yield a head and a row for each task; a column that no task has anything in is left out."""
    columns = [column for column in zip(HEADS, *map(_cells, rows), strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        cells = [
            cell.rjust(width) if column[0] in NUMBERS else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _cells(row: TaskRow) -> tuple[str, ...]:
    more = f" and {len(row.modules) - 1} more" if len(row.modules) > 1 else ""
    return (
        one_line(row.task, NAME_CELLS),
        one_line(row.kind, 20),
        row.date,
        str(row.fail_to_pass or ""),
        str(row.pass_to_pass or ""),
        f"+{row.added} -{row.removed}" if row.added or row.removed else "",
        one_line(row.modules[0], MODULE_CELLS) + more if row.modules else "",
    )


def _count_lines(title: str, rows: Sequence[tuple[str, str]], limit: int) -> Lines:
    if rows:
        yield f"\n{title}:"
    yield from (f"  {neutralise(name):<40} {text}" for name, text in rows[:limit])
    if len(rows) > limit:
        yield f"  and {len(rows) - limit} more"


def _task_lines(view: TaskView) -> Lines:
    for key in ("task", "benchmark", "image", "workdir", "timeout_s"):
        yield f"{key:<10} {one_line(str(getattr(view, key)), 200)}"
    yield f"{'tags':<10} {one_line(', '.join(view.tags), 200)}"
    if view.origin:
        yield from _origin_lines(view.origin)
    yield f"\n{neutralise(view.prompt).rstrip()}\n"
    if view.workspace == IN_IMAGE:
        yield f"workspace: the files of the image in {neutralise(view.workdir)}"
    else:
        yield f"workspace: {fmt.count(len(view.workspace), 'file')}, {view.workspace_bytes:,} bytes"
        yield from _limited(view.workspace, FILES_SHOWN)
    if view.hidden:
        for name, text in view.hidden.tests.items():
            yield f"\n--- hidden: {one_line(name, 200)}"
            yield neutralise(text).rstrip("\n")
        yield "\n--- reference fix"
        yield neutralise(view.hidden.solution).rstrip("\n") or "none that is a patch"


def _origin_lines(origin: OriginView) -> Lines:
    yield f"split      {origin.split}"
    yield f"checksum   {origin.checksum}"
    for key in ("kind", "difficulty"):
        if value := getattr(origin, key):
            yield f"{key:<10} {one_line(value, 200)}"
    fix = ", ".join(f"{name} +{added} -{removed}" for name, (added, removed) in origin.changes.items())
    if fix:
        yield f"fix        {one_line(fix, LINE_CELLS)}"
    if origin.fail_to_pass:
        yield f"\ntests that a fix makes pass: {len(origin.fail_to_pass)}"
        yield from _limited(origin.fail_to_pass, len(origin.fail_to_pass))
        yield f"tests that must still pass: {len(origin.pass_to_pass)}"
        yield from _limited(origin.pass_to_pass, TESTS_SHOWN)
    if origin.provenance:
        facts = asdict(origin.provenance) | {"modules": ", ".join(origin.provenance.modules)}
        yield "\norigin:"
        yield from (
            f"  {key:<8} {one_line(str(value), LINE_CELLS)}" for key, value in facts.items() if value != ""
        )


def _limited(names: Sequence[str], limit: int) -> Lines:
    yield from (f"  {one_line(name, 200)}" for name in names[:limit])
    if len(names) > limit:
        yield f"  and {len(names) - limit} more"


def _fetch_lines(view: FetchView) -> Lines:
    for name, reason in view.failed.items():
        yield f"{neutralise(name)}: {one_line(reason, 600)}"
    removed = f", {len(view.removed)} others removed to make room" if view.removed else ""
    yield f"{fmt.count(len(view.ready), 'image')} ready, {len(view.failed)} failed{removed}"


def _verification_lines(view: VerificationView) -> Lines:
    yield from (f"left out: {neutralise(problem)}" for problem in view.left_out)
    for task, notes in view.notes.items():
        yield from (f"{neutralise(task)}: note: {neutralise(note)}" for note in notes)
    for task, problems in view.problems.items():
        yield from (f"{neutralise(task)}: {neutralise(problem)}" for problem in problems)
        yield from (f"    | {neutralise(line)}" for line in view.outputs.get(task, "").splitlines())
    yield f"{view.sound} of {fmt.count(len(view.verified), 'task')} sound"


def _made_lines(view: MadeSuiteView) -> Lines:
    for task, new in view.renamed.items():
        yield f"{neutralise(task)} is now {neutralise(new)}"
    yield from (f"{neutralise(task)}: left out, an earlier suite has it" for task in view.repeated)
    for task, remarks in view.remarks.items():
        yield from (f"{neutralise(task)}: {neutralise(remark)}" for remark in remarks)
    yield from (f"{neutralise(task)}: skipped: {neutralise(reason)}" for task, reason in view.skipped.items())
    suite = neutralise(str(view.suite))
    yield f"{suite}: {_counts_text(view.tasks)}"
    yield f"next: dgm benchmark verify {suite}"


def _mining_lines(view: MiningView) -> Lines:
    yield f"{view.units} changes of the history, {view.candidates} with code and tests"
    reasons = [*view.left_out.items()]
    yield from (f"  {count:>6}  {neutralise(reason)}" for reason, count in reasons[:REASONS_SHOWN])
    if len(reasons) > REASONS_SHOWN:
        yield f"          and {len(reasons) - REASONS_SHOWN} other reasons (mined.jsonl has all)"
    yield from (f"packages: {neutralise(remark)}" for remark in view.packages[:REASONS_SHOWN])
    suite, total = neutralise(str(view.suite)), fmt.count(sum(view.tasks.values()), "verified task")
    yield f"{suite}: {total} ({_counts_text(view.tasks)}; {_counts_text(view.splits)})"
    yield f"{view.processor_s / 60:.1f} minutes of processor time for tests in this session"
    if not view.model:
        yield "statements show the failing tests; better: let a model write them (--model, --max-usd, another --out)"
    yield f"next: dgm benchmark show {suite}; dgm run --benchmark {suite}"


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())


list_ = derive(suites.benchmark_list, _print(_list_lines))
show = derive(suites.benchmark_show, _print(_show_lines))
fetch = derive(suites.benchmark_fetch, _print(_fetch_lines), trust=True)
verify = derive(suites.benchmark_verify, _print(_verification_lines), trust=True)
mine = derive(mining.benchmark_mine, _print(_mining_lines))
make = derive(suites.benchmark_make, _print(_made_lines))
