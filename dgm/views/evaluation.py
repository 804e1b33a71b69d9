"""Results of an evaluation: what ``evaluate`` returns and prints."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field

from dgm.analysis.budgets import Reason
from dgm.domain import Evaluation, Finding, Task, Verdict
from dgm.evaluation.schedule import AgentResult, Comparison
from dgm.views.conduct import FindingView
from dgm.views.holdout import PairedView, paired_fields
from dgm.views.values import TallyView, UsageView, View

FAILED, USAGE, LIMIT, INTERRUPTED = 1, 2, 3, 130
Outcome = Literal["always", "sometimes", "never"]


class PairedTallies(PairedView):
    """Two agents, or two verdicts of one agent, on the same tasks."""

    first: TallyView
    second: TallyView

    @classmethod
    def of(cls, pairs: Comparison) -> Self:
        """Return the view of a comparison."""
        return cls(first=TallyView.of(pairs.first), second=TallyView.of(pairs.second), **paired_fields(pairs))


class TaskAttempts(View):
    """All attempts of one agent at one task, once every attempt has a verdict."""

    resolved: int
    attempts: int
    outcome: Outcome
    """How often the attempts resolved the task; ``sometimes`` marks a flaky or a medium task."""

    @classmethod
    def of(cls, resolved: int, attempts: int) -> Self:
        """Return the view of so many resolved attempts of all."""
        outcome: Outcome = "never" if not resolved else "always" if resolved == attempts else "sometimes"
        return cls(resolved=resolved, attempts=attempts, outcome=outcome)


class AgentEvaluation(View):
    """One agent's results."""

    name: str
    """``agent 3`` of a run, or the folder, the address or the model of the predictions."""
    agent: int
    """Its id in the evaluation's folder."""
    tally: TallyView
    """First attempts, so that every task counts once."""
    any_attempt: TallyView
    """Tasks; one is resolved if some attempt resolved it."""
    all_attempts: TallyView
    """All attempts together; attempts at one task are not independent, so the interval is too narrow."""
    tags: dict[str, TallyView]
    """Tag → first attempts at the tasks with this tag."""
    resolved: tuple[str, ...]
    """Tasks that the first attempt resolved."""
    unresolved: dict[str, str]
    """Task that the first attempt did not resolve → reason."""
    given_up: dict[str, str]
    """Task without a verdict because the infrastructure failed too often → reason."""
    outcomes: dict[str, TaskAttempts]
    """Task → how often it was resolved; tasks with a missing attempt are left out."""
    missing: int
    """Evaluations that are not done yet."""
    spend: UsageView
    """Failed and invalid tries are included."""
    usd_per_resolved: float | None
    """Cost per resolved attempt; None without one."""
    findings: dict[str, tuple[FindingView, ...]] = Field(default_factory=dict)
    """Task → what counts against the agent, over all attempts."""

    @classmethod
    def of(cls, name: str, result: AgentResult, tasks: Sequence[Task], attempts: int) -> Self:
        """Return the view of one agent's results."""
        resolved = result.attempts.resolved
        return cls(
            name=name,
            agent=result.agent,
            tally=TallyView.of(result.tally),
            any_attempt=TallyView.of(result.any),
            all_attempts=TallyView.of(result.attempts),
            tags={tag: TallyView.of(tally) for tag, tally in result.by_tag(tasks).items()},
            resolved=tuple(task for task in result.first if task not in result.unresolved),
            unresolved={str(task): reason for task, reason in result.unresolved.items()},
            given_up={str(task): reason for task, reason in result.abandoned.items()},
            outcomes=_count_outcomes(result.graded, attempts),
            missing=result.missing,
            spend=UsageView.of(result.spend),
            usd_per_resolved=result.spend.usd / resolved if resolved else None,
            findings={
                task: FindingView.all_of(dict.fromkeys(findings))
                for task, findings in _gather_findings(result.graded).items()
            },
        )


def _gather_findings(graded: Sequence[Evaluation]) -> dict[str, list[Finding]]:
    findings: dict[str, list[Finding]] = {}
    for evaluation in graded:
        if evaluation.findings:
            findings.setdefault(evaluation.task, []).extend(evaluation.findings)
    return findings


def _count_outcomes(graded: Sequence[Evaluation], attempts: int) -> dict[str, TaskAttempts]:
    tried = Counter(evaluation.task for evaluation in graded)
    resolved = Counter(evaluation.task for evaluation in graded if evaluation.verdict is Verdict.RESOLVED)
    return {
        task: TaskAttempts.of(resolved[task], count) for task, count in tried.items() if count == attempts
    }


class EvaluationView(View):
    """An evaluation of agents, or of a file of predictions; earlier sessions are included."""

    folder: str
    """Where it is recorded; ``dgm.open(folder)`` reads each verdict."""
    benchmark: str
    version: str
    split: str
    """``search``, ``holdout``, ``all``, or ``submitted`` for the tasks of predictions."""
    model: str | None
    """None if no model was called."""
    tasks: int
    attempts: int
    """Attempts at each task."""
    ended: str
    """Why this session ended: ``goal reached`` or ``nothing left to do`` if complete, ``budget spent`` …"""
    message: str
    """The same in one line."""
    missing: int
    """Evaluations that are not done yet; the same call continues with them."""
    agents: tuple[AgentEvaluation, ...]
    comparison: PairedTallies | None
    """The second agent against the first, if there are two."""
    spend: UsageView
    report: dict[str, Any] | None = None
    """Of predictions: the results in the form of SWE-bench's harness, also written to ``report.json``."""
    left_out: int = 0
    """Predictions of the file that were not to be graded."""

    @property
    def given_up(self) -> int:
        """Number of tasks without a verdict because the infrastructure failed too often."""
        return sum(len(agent.given_up) for agent in self.agents)

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 0 if every evaluation has a verdict."""
        if not self.missing:
            return FAILED if self.given_up else 0
        return code_of_ending(self.ended)


def code_of_ending(ended: str) -> int:
    """Return the exit code of a session that ended too early, by the value of its ``Reason``."""
    return {
        Reason.LIMIT.value: LIMIT,
        Reason.STOPPED.value: INTERRUPTED,
        Reason.REFUSED.value: USAGE,
    }.get(ended, FAILED)
