"""Results of a replay: whether a run's decisions, lineages and evaluations come out the same again."""

from collections import Counter
from collections.abc import Sequence
from typing import Self

from pydantic import Field

from dgm.analysis.budgets import Reason
from dgm.archive.run import Run
from dgm.domain import AgentId
from dgm.replay import (
    Decision,
    Decisions,
    Divergence,
    EvaluationAgain,
    LiveEvaluations,
    LiveLineage,
    LiveStep,
    Match,
    StepAgain,
)
from dgm.views.evaluation import FAILED, LIMIT, PairedTallies
from dgm.views.values import UsageView, View

FAILURES = (Match.DIFFERENT, Match.NOT_PERFORMED)


class DecisionsReplay(View):
    """All decisions of a run, made again by its policy."""

    run: str
    replay: str = "decisions"
    identical: bool
    asked: int
    """Number of decisions."""
    differing: int
    first: Decision | None
    """The first decision that differs."""
    seconds: float

    @classmethod
    def of(cls, run: Run, decisions: Decisions) -> Self:
        """Return the view of repeated decisions."""
        return cls(
            run=run.name,
            identical=not decisions.differing,
            asked=decisions.asked,
            differing=decisions.differing,
            first=decisions.first,
            seconds=decisions.seconds,
        )

    @property
    def exit_code(self) -> int:
        """Exit code of the command."""
        return 0 if self.identical else FAILED


class VerdictView(View):
    """A verdict with its reason."""

    verdict: str
    reason: str


class EvaluationReplay(View):
    """One evaluation, repeated."""

    action: int
    agent: int
    task: str
    attempt: int
    """Number of the attempt at the task, from 1."""
    match: Match
    recorded: VerdictView
    again: VerdictView | None
    """None if there is no new verdict."""
    divergence: Divergence | None
    seconds: float

    @classmethod
    def of(cls, done: EvaluationAgain) -> Self:
        """Return the view of a repeated evaluation."""
        then = done.recorded
        return cls(
            action=done.action,
            agent=then.agent,
            task=then.task,
            attempt=then.attempt + 1,
            match=done.match,
            recorded=VerdictView(verdict=then.verdict, reason=then.reason),
            again=VerdictView(verdict=done.verdict, reason=done.reason) if done.verdict else None,
            divergence=done.divergence,
            seconds=done.seconds,
        )


class RecordReplay(View):
    """A lineage or evaluations, repeated on the record alone."""

    run: str
    replay: str
    """``lineage``, ``evaluations`` (recorded patches graded again), or ``work`` (the agents worked again)."""
    identical: bool
    counts: dict[Match, int]
    """Outcome of a comparison → number of steps or evaluations."""
    seconds: float
    agent: int | None
    """The last agent of the lineage."""
    steps: tuple[StepAgain, ...]
    evaluations: tuple[EvaluationReplay, ...]

    @classmethod
    def of(
        cls,
        run: Run,
        what: str,
        seconds: float,
        steps: Sequence[StepAgain] = (),
        evaluations: Sequence[EvaluationReplay] = (),
    ) -> Self:
        """Return the view of what was repeated."""
        counts = Counter([step.match for step in steps] + [done.match for done in evaluations])
        return cls(
            run=run.name,
            replay=what,
            identical=set(counts) <= {Match.SAME},
            counts={match: counts[match] for match in Match},
            seconds=seconds,
            agent=steps[-1].agent if steps else None,
            steps=tuple(steps),
            evaluations=tuple(evaluations),
        )

    @property
    def exit_code(self) -> int:
        """Exit code of the command: 1 if something differs or could not be performed."""
        return FAILED if any(self.counts[match] for match in FAILURES) else 0


class LiveReplay(View):
    """A lineage or evaluations, repeated by another model and recorded in a run of its own."""

    run: str
    replay: str
    """``lineage`` or ``evaluations``."""
    live: str
    """The model."""
    folder: str
    """Where it is recorded."""
    ended: Reason
    """Why the session ended; ``nothing left to do`` if it is complete."""
    message: str
    """The same in one line."""
    missing: int
    """Steps or evaluations that are not done yet; the same call continues with them."""
    spend: UsageView
    """All sessions."""
    agent: int | None = None
    """The last agent of the lineage."""
    steps: tuple[LiveStep, ...] = ()
    against_record: PairedTallies | None = None
    """Evaluations: the recorded verdicts (first) and the new ones (second)."""
    agents: dict[int, PairedTallies] = Field(default_factory=dict)
    """Agent → the same for it alone."""

    @classmethod
    def of(
        cls, run: Run, model: str, done: LiveLineage | LiveEvaluations, agent: AgentId | None = None
    ) -> Self:
        """Return the view of a live replay; ``agent`` is the last one of a lineage."""
        view = cls(
            run=run.name,
            replay="lineage" if isinstance(done, LiveLineage) else "evaluations",
            live=model,
            folder=str(done.folder),
            ended=done.ending.reason,
            message=done.ending.message,
            missing=done.missing,
            spend=UsageView.of(done.spend),
            agent=agent,
        )
        if isinstance(done, LiveLineage):
            return view.model_copy(update={"steps": tuple(done.steps)})
        agents = {member: PairedTallies.of(pairs) for member, pairs in done.agents.items()}
        return view.model_copy(
            update={"against_record": PairedTallies.of(done.against_record), "agents": agents}
        )

    @property
    def exit_code(self) -> int:
        """Exit code of the command."""
        return {Reason.NOTHING_LEFT: 0, Reason.LIMIT: LIMIT}.get(self.ended, FAILED)


ReplayView = DecisionsReplay | RecordReplay | LiveReplay
