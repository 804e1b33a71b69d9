"""The report of an evaluation: tallies with intervals, by tag, in pairs, and the cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.analysis.budgets import Ending
from dgm.analysis.summary import spend_record, tally_record
from dgm.domain import Task, Usage
from dgm.evaluation.evaluating import AgentResult, compare_first_attempts
from dgm.protocols import Benchmark
from dgm.show.safe import neutralise, one_line
from dgm.show.words import given_up_text, interval_text, mcnemar_text, tally_text, usage_text

REASON_WIDTH = 160


@dataclass(frozen=True, slots=True)
class EvaluationReport:
    """The subjects and the results of an evaluation."""

    folder: Path
    benchmark: Benchmark
    split: str
    model: str
    """Name of the model; empty if none was called."""
    names: Sequence[str]
    """Names of the agents, for people."""
    results: Sequence[AgentResult]
    """In the order of ``names``."""
    tasks: Sequence[Task]
    attempts: int
    ended: Ending


def report_record(found: EvaluationReport) -> dict[str, Any]:
    """Return the evaluation as a record for programs."""
    return {
        "folder": str(found.folder),
        "benchmark": found.benchmark.name,
        "version": found.benchmark.version,
        "split": found.split,
        "model": found.model or None,
        "tasks": len(found.tasks),
        "attempts": found.attempts,
        "ended": found.ended.reason.value,
        "missing": sum(result.missing for result in found.results),
        "agents": [
            _agent_record(found, name, result)
            for name, result in zip(found.names, found.results, strict=True)
        ],
        "comparison": compare_first_attempts(*found.results).record() if len(found.results) == 2 else None,
        "spend": spend_record(_sum_spend(found)),
    }


def _agent_record(found: EvaluationReport, name: str, result: AgentResult) -> dict[str, Any]:
    each = _usd_each(result)
    record = {
        "name": name,
        "agent": result.agent,
        "tally": tally_record(result.tally),
        "tags": {tag: tally_record(tally) for tag, tally in result.by_tag(found.tasks).items()},
        "resolved": [task for task, done in result.first.items() if task not in result.unresolved],
        "unresolved": dict(result.unresolved),
        "given_up": dict(result.given_up),
        "missing": result.missing,
        "spend": spend_record(result.spend),
        "usd_per_resolved": None if each is None else round(each, 6),
    }
    if found.attempts > 1:
        record["any_attempt"] = tally_record(result.any)
        record["all_attempts"] = {"resolved": result.attempts.resolved, "n": result.attempts.n}
    return record


def report_lines(found: EvaluationReport, *, verbose: bool) -> Iterator[str]:
    """Yield the evaluation as lines for people."""
    by = f" by {one_line(found.model, 80)}" if found.model else ""
    which = "task" if len(found.tasks) == 1 else "tasks"
    which = f"{which} of all splits" if found.split == "all" else f"{found.split} {which}"
    yield (
        f"{len(found.tasks)} {which} of {one_line(found.benchmark.name, 80)}{by} (95 % Wilson intervals over tasks):"
    )
    width = max(map(len, found.names))
    for name, result in zip(found.names, found.results, strict=True):
        tally = f"{tally_text(result.tally):<12} {interval_text(result.tally):<8}"
        given_up = given_up_text(len(result.given_up))
        cost = _cost_text(found, result)
        yield f"  {neutralise(name):<{width}}  {tally}{cost}{f'  {given_up}' if given_up else ''}"
        if found.attempts > 1:
            yield f"  {'':<{width}}  {_attempts_text(found, result)}"
    yield from _tag_lines(found, width)
    if len(found.results) == 2:
        pairs = compare_first_attempts(*found.results)
        yield (
            f"  {found.names[1]} against {found.names[0]}: {len(pairs.gained)} gained, {len(pairs.lost)} lost "
            f"on {pairs.first.n} tasks; {mcnemar_text(pairs.p, pairs.mid_p)}"
        )
    yield from _unresolved_lines(found, verbose=verbose)
    spend = _sum_spend(found)
    yield f"recorded in {found.folder}" + (f"; {usage_text(spend)}" if spend.calls else "")


def _cost_text(found: EvaluationReport, result: AgentResult) -> str:
    if not found.model:
        return ""
    each = _usd_each(result)
    what = "task" if found.attempts == 1 else "attempt"
    return f" {result.spend.usd:.4f} USD" + (
        f", {each:.4f} for each resolved {what}" if each is not None else ""
    )


def _attempts_text(found: EvaluationReport, result: AgentResult) -> str:
    every, some = result.attempts, result.any
    return (
        f"above: first attempts; all {found.attempts} attempts {tally_text(every)}; "
        f"resolved at least once {tally_text(some)} {interval_text(some)}"
    )


def _tag_lines(found: EvaluationReport, width: int) -> Iterator[str]:
    tables = [result.by_tag(found.tasks) for result in found.results]
    tags = sorted({tag for table in tables for tag in table})
    # Tags that all tasks share, or that belong to one task each, are no information.
    if not 1 < len(tags) < len(found.tasks):
        return
    yield "  by tag:"
    broad = max(len(neutralise(tag)) for tag in tags)
    for tag in tags:
        for name, table in zip(found.names, tables, strict=True):
            if tag in table:
                yield (
                    f"    {neutralise(tag):<{broad}}  {neutralise(name):<{width}}  {tally_text(table[tag]):<12} "
                    f"{interval_text(table[tag])}"
                )


def _unresolved_lines(found: EvaluationReport, *, verbose: bool) -> Iterator[str]:
    count = sum(len(result.unresolved) for result in found.results)
    if not verbose:
        if count:
            yield f"  {count} unresolved; --verbose lists them with their reasons"
        return
    for name, result in zip(found.names, found.results, strict=True):
        for word, listed in (("unresolved", result.unresolved), ("given up", result.given_up)):
            for task, reason in listed.items():
                yield f"  {neutralise(name)} {word} {neutralise(task)}: {one_line(reason, REASON_WIDTH)}"


def _usd_each(result: AgentResult) -> float | None:
    resolved = result.attempts.resolved
    return result.spend.usd / resolved if resolved else None


def _sum_spend(found: EvaluationReport) -> Usage:
    return sum((result.spend for result in found.results), Usage())
