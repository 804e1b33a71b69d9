"""The tasks of a suite as people look at them: facts, origin, and on request what is hidden from agents."""

from dataclasses import asdict
from typing import Any

from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.task_facts import TaskFacts, list_facts, read_facts
from dgm.domain import TaskId
from dgm.errors import UserError
from dgm.protocols import Benchmark


def find_facts(opened: Benchmark) -> tuple[TaskFacts, ...]:
    """Return the facts of all tasks; none for a benchmark that is not a suite's folder."""
    return list_facts(opened) if isinstance(opened, SuiteBenchmark) else ()


def describe_origin(opened: Benchmark, task: TaskId) -> dict[str, Any]:
    """Return a task's split, kind, changed files, names of tests and origin as JSON; empty if its benchmark has none.

    Raises:
        UserError: there is no such task.
    """
    if not isinstance(opened, SuiteBenchmark):
        return {}
    facts = read_facts(opened, task)
    return {
        "split": facts.split.value,
        "kind": facts.kind,
        "difficulty": facts.difficulty,
        "changes": {name: list(counts) for name, counts in facts.changes.items()},
        "tests": {"fail_to_pass": list(facts.fail_to_pass), "pass_to_pass": list(facts.pass_to_pass)},
        "provenance": asdict(facts.provenance) if facts.provenance else None,
        "calibration": asdict(tried) if (tried := opened.calibrations().get(task)) else None,
    }


def describe_hidden(opened: Benchmark, task: TaskId) -> dict[str, Any]:
    """Return the hidden tests and the reference fix of a task as JSON.

    Raises:
        UserError: there is no such task, or its benchmark has no folder.
    """
    if not isinstance(opened, SuiteBenchmark):
        raise UserError(f"benchmark {opened.name!r}: only suites that are folders show their hidden tests")
    try:
        solution = opened.reference(task).decode("utf-8", "replace")
    except UserError:
        solution = ""
    hidden = opened.hidden_tests(task)
    return {
        "tests": {name: entry.data.decode("utf-8", "replace") for name, entry in hidden.items()},
        "solution": solution,
    }
