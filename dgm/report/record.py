"""The facts of a report for programs; facts older than the page keep their names."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dgm.analysis.summary import (
    accounts_record,
    agent_record,
    models_of,
    spend_record,
    tally_record,
    usage_records,
)
from dgm.archive.identity import identity_of
from dgm.archive.run import Run
from dgm.evaluation.exam import Comparison
from dgm.report.curve import CurvePoint
from dgm.report.facts import RunReport
from dgm.report.headline import holdout_record
from dgm.report.reproduce import Reproduction
from dgm.report.steps import PathStep


def report_record(run: Run, report: RunReport, operators: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the report as one JSON document; ``operators`` are the records of the operators."""
    seed, best = run.tree.agents[0], run.tree.agents[report.best]
    return {
        **identity_of(run).beside_seed_agent(),
        "state": report.run["state"],
        "note": report.note,
        "answer": report.verdict.answer.value,
        "headline": report.verdict.sentence,
        "seed": agent_record(run, seed),
        "best": agent_record(run, best),
        "chosen": report.chosen,
        "models": models_of(run),
        "spend": {
            **spend_record(report.spend),
            "by": usage_records(report.by),
            "purposes": {purpose.value: spend_record(usage) for purpose, usage in report.purposes.items()},
            "agents": accounts_record(run),
        },
        "operators": operators,
        "holdout": holdout_record(report.found) if report.found else None,
        "curve": [_point_record(point) for point in report.curve],
        "lineage": {
            "agents": list(report.line.agents),
            "steps": [_step_record(step) for step in report.line.steps],
        },
        "matrix": _matrix_record(report),
        "groups": report.groups.record(),
        "failures": _failures_record(report),
        "reproduce": _reproduction_record(report.reproduction),
        "not_there": list(report.damage),
    }


def _point_record(point: CurvePoint) -> dict[str, Any]:
    return {
        "evaluations": point.evaluations,
        "usd": round(point.usd, 6),
        "tokens": point.tokens,
        "seconds": round(point.seconds, 3),
        "agent": point.agent,
        "rate": round(point.raw, 6),
        "lower_bound": round(point.lower, 6),
    }


def _step_record(step: PathStep) -> dict[str, Any]:
    return {
        "agent": step.agent.id,
        "parents": list(step.agent.parents),
        "commit": step.agent.commit,
        "operator": step.agent.operator,
        "aim": step.aim,
        "rationale": step.agent.rationale,
        "own": tally_record(step.own),
        "clade": tally_record(step.clade),
        "against_parent": _comparison_record(step.against) if step.against else None,
        "patch": None if step.damage else step.patch.decode("utf-8", "replace"),
    }


def _comparison_record(pairs: Comparison) -> dict[str, Any]:
    return {
        "tasks": pairs.first.n,
        "parent": tally_record(pairs.first),
        "agent": tally_record(pairs.second),
        "gained": list(pairs.gained),
        "lost": list(pairs.lost),
    }


def _matrix_record(report: RunReport) -> dict[str, Any]:
    found = report.matrix
    rows = [
        {**asdict(row), "verdicts": [verdict.value if verdict else None for verdict in row.verdicts]}
        for row in found.rows
    ]
    return {
        "agents": list(found.agents),
        "tasks": rows,
        "left_out": {"agents": found.agents_left_out, "tasks": found.tasks_left_out},
    }


def _reproduction_record(found: Reproduction) -> dict[str, Any]:
    commits = {str(agent): commit for agent, commit in found.commits.items()}
    return {**asdict(found), "command": found.command or None, "commits": commits}


def _failures_record(report: RunReport) -> dict[str, Any]:
    found = report.failures
    return {
        "unresolved": _count_records(report.unresolved),
        "stillborn": [
            {"operator": operator, "stage": stage, "times": times}
            for (operator, stage), times in found.stillborn.items()
        ],
        "invalid": _count_records(found.invalid),
        "lost": _count_records(found.lost),
        "refused": dict(found.refused),
    }


def _count_records(kinds: Sequence[tuple[str, int]]) -> list[dict[str, Any]]:
    return [{"reason": what, "times": times} for what, times in kinds]
