"""The facts that are read of each compared run; how runs are compared is left to others."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.analysis.best import best_of
from dgm.analysis.summary import run_facts
from dgm.archive.identity import RunIdentity, identity_of
from dgm.archive.run import Run
from dgm.benchmarks.grader_version import differ_in_grader, name_grader
from dgm.comparison.moments import recommendations
from dgm.config.resolving import leaves
from dgm.domain import Agent, Tally, TaskId, Verdict
from dgm.errors import UserError
from dgm.evaluation.evaluating import PLAN as EVALUATION
from dgm.evaluation.exam import FOLDER, find_candidate
from dgm.report.curve import CurvePoint
from dgm.report.headline import exam_exists, read_findings
from dgm.search.run_settings import settings_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """A run in a comparison."""

    identity: RunIdentity
    variant: str | None
    """The run's name in its sweep; None for a run that no sweep named."""
    settings: Mapping[str, Any]
    """The present settings by dotted key."""
    benchmark: str
    """Version of the suite, a hash of its content."""
    facts: Mapping[str, Any]
    """The record of ``run_facts``."""
    search: Mapping[TaskId, Verdict | None]
    """First verdicts of the recommended agent on the search tasks."""
    holdout: Mapping[TaskId, Verdict | None] | None
    """First verdicts on the holdout tasks; None where the examination is not complete."""
    curve: Sequence[CurvePoint]
    """The recommended agent of each moment; empty where there is no verdict yet."""

    @property
    def name(self) -> str:
        """The run's name."""
        return self.identity.run

    @property
    def holdout_tally(self) -> Tally | None:
        """Tally of the recommended agent on the holdout tasks; None where none of them was graded."""
        verdicts = list((self.holdout or {}).values())
        tally = Tally(verdicts.count(Verdict.RESOLVED), verdicts.count(Verdict.UNRESOLVED))
        return tally if tally.n else None


def read_subject(run: Run, variant: str | None) -> ComparedRun:
    """Read the facts of a run for a comparison.

    Args:
        run: as far as its tree has read the log.
        variant: its name in its sweep.

    Raises:
        UserError: it is no search, or has no agent yet.
    """
    if EVALUATION in run.config or run.folder.name == FOLDER:
        raise UserError(f"{run.folder}: an evaluation or examination, not a search; name the run itself")
    if not run.tree.agents:
        raise UserError(f"run {run.name} has no agent yet; wait until its seed is born, or leave it out")
    best = run.tree.agents[best_of(run)]
    return ComparedRun(
        identity_of(run),
        variant,
        {".".join(path): value for path, value in leaves(settings_of(run).model_dump(mode="json"))},
        run.config["versions"]["benchmark"],
        run_facts(run, best.id),
        dict(run.tree.verdicts(best.id)),
        _holdout(run, best),
        recommendations(run),
    )


def check_comparable(subjects: Sequence[ComparedRun]) -> None:
    """Check that all runs were judged by the same tasks.

    Raises:
        UserError: two were not; names them.
    """
    first = subjects[0]
    for other in subjects[1:]:
        if differ_in_grader(other.benchmark, first.benchmark) or differ_in_grader(
            first.benchmark, other.benchmark
        ):
            log.warning(
                "%s has verdicts of %s, %s of %s, which may judge the same patch otherwise",
                first.name,
                name_grader(first.benchmark),
                other.name,
                name_grader(other.benchmark),
            )
        elif other.benchmark != first.benchmark:
            raise UserError(
                f"{first.name} and {other.name} were judged by different suites "
                f"({_suite(first)} and {_suite(other)}): their scores do not compare; compare runs on one suite"
            )


def _suite(subject: ComparedRun) -> str:
    return f"{subject.facts['benchmark']}, version {subject.benchmark[:12]}"


def _holdout(run: Run, agent: Agent) -> Mapping[TaskId, Verdict | None] | None:
    found = read_findings(run, agent) if exam_exists(run) else None
    if found is None or not found.tasks or found.missing:
        return None
    with Run.open(run.folder / FOLDER) as exam:
        entered = find_candidate(exam, agent)
        return None if entered is None else dict(exam.tree.verdicts(entered))
