"""Tasks of a suite as lines: a row each, a summary by kind, and one task as a person reads it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from dgm.benchmarks.calibration import ALWAYS, NEVER, SOMETIMES
from dgm.benchmarks.task_facts import TaskFacts
from dgm.show.safe import neutralise, one_line

TESTS_SHOWN = 12
"""Maximum names of tests that must still pass."""
NAME_CELLS, MODULE_CELLS = 60, 50
"""Maximum characters of a task's id and of a module in a row."""
_HEADS = ("task", "kind", "day", "F2P", "P2P", "lines", "solved", "module")


def has_origins(facts: Sequence[TaskFacts]) -> bool:
    """Return whether any task has tests by name or was mined, so that rows tell more than ids."""
    return any(each.provenance or each.fail_to_pass for each in facts)


def task_rows(facts: Sequence[TaskFacts]) -> Iterator[str]:
    """Yield a head and a row for each task: kind, day, tests that fail and pass, lines of the fix, calibration, module.

    A column that no task has anything in is left out.
    """
    columns = [column for column in zip(_HEADS, *map(_cells, facts), strict=True) if any(column[1:])]
    widths = [max(map(len, column)) for column in columns]
    for row in zip(*columns, strict=True):
        cells = (
            cell.rjust(width) if column[0] in ("F2P", "P2P", "lines", "solved") else cell.ljust(width)
            for column, cell, width in zip(columns, row, widths, strict=True)
        )
        yield "  ".join(cells).rstrip()


def kind_rows(facts: Sequence[TaskFacts]) -> Iterator[str]:
    """Yield a line for each kind of task: how many, from when to when, tests that fail, lines of the fix."""
    kinds = dict.fromkeys(each.kind for each in facts)
    width = max((len(kind or "no kind") for kind in kinds), default=0)
    for kind in kinds:
        own = [each for each in facts if each.kind == kind]
        days = sorted(each.day for each in own if each.day)
        parts = [f"{neutralise(kind or 'no kind'):<{width}}  {len(own):>4}"]
        parts += [f"{days[0]} to {days[-1]}"] if days else []
        parts += [f"F2P {_range_text([len(each.fail_to_pass) for each in own])}"]
        parts += [f"lines {_range_text([each.added + each.removed for each in own])}"]
        yield "  ".join(parts)


def calibration_rows(facts: Sequence[TaskFacts]) -> Iterator[str]:
    """Yield a line for each agent and model that tasks were calibrated with: how often they were solved."""
    whole: dict[str, Counter[str]] = {}
    for each in facts:
        if each.calibration:
            by = f"{each.calibration.agent} with {each.calibration.model}"
            whole.setdefault(by, Counter())[each.calibration.outcome] += 1
    for by, counts in whole.items():
        told = ", ".join(f"{outcome} {counts[outcome]}" for outcome in (ALWAYS, SOMETIMES, NEVER))
        yield f"{one_line(by, 120)}: {told}"


def origin_lines(record: Mapping[str, Any]) -> Iterator[str]:
    """Yield what people may know of one task: its split, kind, tests by name, and origin.

    Args:
        record: as ``dgm.sessions.suite_tasks.describe_origin`` returns it.
    """
    yield f"split      {record['split']}"
    for key in ("kind", "difficulty"):
        if record[key]:
            yield f"{key:<10} {one_line(record[key], 200)}"
    if tried := record["calibration"]:
        times = f"{tried['resolved']} of {tried['attempts']} attempts"
        yield f"solved     {times} by {one_line(tried['agent'], 80)} with {one_line(tried['model'], 80)}"
    fix = ", ".join(f"{name} +{added} -{removed}" for name, (added, removed) in record["changes"].items())
    if fix:
        yield f"fix        {one_line(fix, 300)}"
    tests = record["tests"]
    if tests["fail_to_pass"]:
        yield f"\ntests that a fix makes pass: {len(tests['fail_to_pass'])}"
        yield from (f"  {one_line(name, 200)}" for name in tests["fail_to_pass"])
        yield f"tests that must still pass: {len(tests['pass_to_pass'])}"
        yield from (f"  {one_line(name, 200)}" for name in tests["pass_to_pass"][:TESTS_SHOWN])
        if len(tests["pass_to_pass"]) > TESTS_SHOWN:
            yield f"  and {len(tests['pass_to_pass']) - TESTS_SHOWN} more"
    if origin := record["provenance"]:
        yield "\norigin:"
        for key in ("kind", "commit", "date", "license", "recipe", "seed"):
            if origin[key] not in ("", None):
                yield f"  {key:<8} {one_line(str(origin[key]), 300)}"
        if origin["modules"]:
            yield f"  {'modules':<8} {one_line(', '.join(origin['modules']), 300)}"


def hidden_lines(hidden: Mapping[str, Any]) -> Iterator[str]:
    """Yield the hidden tests and the reference fix of a task, file by file."""
    for name, text in hidden["tests"].items():
        yield f"\n--- hidden: {one_line(name, 200)}"
        yield neutralise(text).rstrip("\n")
    yield "\n--- reference fix"
    yield neutralise(hidden["solution"]).rstrip("\n") or "none that is a patch"


def _cells(facts: TaskFacts) -> tuple[str, ...]:
    more = f" and {len(facts.modules) - 1} more" if len(facts.modules) > 1 else ""
    module = one_line(facts.modules[0], MODULE_CELLS) + more if facts.modules else ""
    return (
        one_line(facts.id, NAME_CELLS),
        one_line(facts.kind, 20),
        facts.day,
        str(len(facts.fail_to_pass) or ""),
        str(len(facts.pass_to_pass) or ""),
        f"+{facts.added} -{facts.removed}" if facts.changes else "",
        f"{facts.calibration.resolved}/{facts.calibration.attempts}" if facts.calibration else "",
        module,
    )


def _range_text(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}, median {median(numbers):g}"
