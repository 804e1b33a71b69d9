"""A comparison of runs for programs."""

from collections.abc import Sequence
from typing import Any

from dgm.analysis.summary import tally_record
from dgm.comparison.grouping import Grouping
from dgm.comparison.pairs import SeedPairs, TaskPairs
from dgm.comparison.subjects import ComparedRun
from dgm.report.headline import difference_record


def comparison_record(
    subjects: Sequence[ComparedRun],
    grouping: Grouping | None,
    tasks: Sequence[TaskPairs],
    seeds: Sequence[SeedPairs],
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return the comparison as one JSON document."""
    return {
        "benchmark": subjects[0].facts["benchmark"],
        "benchmark_version": subjects[0].benchmark,
        "runs": [_run(subject) for subject in subjects],
        "group_by": grouping.by if grouping else None,
        "groups": {name: [each.name for each in members] for name, members in grouping.groups.items()}
        if grouping
        else {},
        "paired_by": list(grouping.paired_by) if grouping else ["task"],
        "pairs_of_runs": [_seeds(each, grouping.paired_by) for each in seeds] if grouping else [],
        "pairs_of_tasks": [_tasks(each) for each in tasks],
        "notes": list(notes),
    }


def _run(subject: ComparedRun) -> dict[str, Any]:
    facts = subject.facts
    end = subject.curve[-1] if subject.curve else None
    return {
        **subject.identity.record(),
        "variant": subject.variant,
        "state": facts["state"],
        "agents": facts["agents"],
        "evaluations": facts["evaluations"]["graded"],
        "usd": facts["spend"]["usd"],
        "tokens": facts["spend"]["tokens"],
        "best": facts["best"],
        "holdout": _holdout(subject),
        "curve_end": None
        if end is None
        else {
            "agent": end.agent,
            "score": round(end.raw, 6),
            "lower_bound": round(end.lower, 6),
            "evaluations": end.evaluations,
        },
    }


def _holdout(subject: ComparedRun) -> dict[str, Any] | None:
    tally = subject.holdout_tally
    return None if tally is None else tally_record(tally)


def _seeds(found: SeedPairs, paired_by: Sequence[str]) -> dict[str, Any]:
    return {
        "measure": found.measure,
        "first": found.first,
        "second": found.second,
        "pairs": [
            {
                **dict(zip(paired_by, key, strict=True)),
                "first": round(one, 6),
                "second": round(two, 6),
                "difference": round(two - one, 6),
            }
            for key, (one, two) in found.pairs.items()
        ],
        "mean": None if found.mean is None else round(found.mean, 6),
        "interval": None if found.interval is None else [round(end, 6) for end in found.interval],
    }


def _tasks(found: TaskPairs) -> dict[str, Any]:
    pairs = found.found
    return {
        "tasks": found.tasks,
        "first": found.first.name,
        "second": found.second.name,
        "pairs": pairs.first.n,
        "first_tally": tally_record(pairs.first),
        "second_tally": tally_record(pairs.second),
        "gained": list(pairs.gained),
        "lost": list(pairs.lost),
        "difference": difference_record(pairs),
        "mcnemar_p": pairs.p,
        "mcnemar_mid_p": pairs.mid_p,
    }
