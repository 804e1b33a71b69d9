"""Results of a replay: whether a run's decisions, lineages and evaluations come out the same again."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from msgspec import structs
from pydantic import InstanceOf, PlainSerializer

from dgm.analysis.budgets import Ending, Reason
from dgm.archive.events import TasksChanged
from dgm.archive.run import Run
from dgm.domain import Action, AgentId, Evaluate, Expand, TaskId, Verdict
from dgm.evaluation.schedule import compare_verdicts
from dgm.replay.again import Divergence, EvaluationAgain, Match, StepAgain
from dgm.replay.decisions import Decisions
from dgm.views.evaluation import FAILED, LIMIT, PairedTallies
from dgm.views.events import count_attempts_from_1
from dgm.views.values import UsageView, View

FAILURES = (Match.DIFFERENT, Match.NOT_PERFORMED)


def _action_fields(action: Action | TasksChanged | None) -> dict[str, Any] | None:
    return None if action is None else count_attempts_from_1(structs.asdict(action))


ActionField = Annotated[
    InstanceOf[Expand] | InstanceOf[Evaluate] | InstanceOf[TasksChanged] | None,
    PlainSerializer(_action_fields, dict[str, Any] | None),
]


class DecisionView(View):
    """One question that now has another answer."""

    seq: int
    """Number of the event that the question led to."""
    action: int
    did: ActionField
    """The run's action, or its change of the tasks; None if the run ended because nothing was left to do."""
    says: ActionField
    """The answer now; None if it would wait or end."""


class DecisionsReplay(View):
    """All decisions of a run, made again by its policy."""

    run: str
    replay: str = "decisions"
    identical: bool
    asked: int
    """Number of decisions."""
    differing: int
    first: DecisionView | None
    """The first decision that differs."""
    seconds: float

    @classmethod
    def of(cls, run: Run, decisions: Decisions) -> Self:
        """Return the view of repeated decisions."""
        first = decisions.first
        return cls(
            run=run.name,
            identical=not decisions.differing,
            asked=decisions.asked,
            differing=decisions.differing,
            first=None if first is None else DecisionView.model_validate(first, from_attributes=True),
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
    """Evaluations, repeated by another model and recorded in a run of their own."""

    run: str
    replay: str = "evaluations"
    live: str
    """The model."""
    folder: str
    """Where it is recorded."""
    ended: Reason
    """Why the session ended; ``nothing left to do`` if it is complete."""
    message: str
    """The same in one line."""
    missing: int
    """Evaluations that are not done yet; the same call continues with them."""
    spend: UsageView
    """All sessions."""
    against_record: PairedTallies
    """The recorded verdicts (first) and the new ones (second)."""
    agents: dict[int, PairedTallies]
    """Agent → the same for it alone."""

    @classmethod
    def of(
        cls,
        recorded: Run,
        live: Run,
        model: str,
        pairs: Mapping[tuple[AgentId, TaskId], Verdict | None],
        ending: Ending,
    ) -> Self:
        """Return the view of a live replay.

        Args:
            recorded: the run that is repeated.
            live: the run in which the work is recorded.
            model: the model that worked.
            pairs: an agent of ``recorded`` and a task → the new verdict.
            ending: how the last session of ``live`` ended.
        """
        rows = [
            (agent, task, recorded.tree.verdict(agent, task), now) for (agent, task), now in pairs.items()
        ]
        together = compare_verdicts((f"agent {agent} {task}", then, now) for agent, task, then, now in rows)
        return cls(
            run=recorded.name,
            live=model,
            folder=str(live.folder),
            ended=ending.reason,
            message=ending.message,
            missing=sum(now is None for now in pairs.values()),
            spend=UsageView.of(live.tree.spend),
            against_record=PairedTallies.of(together),
            agents={
                agent: PairedTallies.of(
                    compare_verdicts((task, then, now) for other, task, then, now in rows if other == agent)
                )
                for agent, _ in pairs
            },
        )

    @property
    def exit_code(self) -> int:
        """Exit code of the command."""
        return {Reason.NOTHING_LEFT: 0, Reason.LIMIT: LIMIT}.get(self.ended, FAILED)


ReplayView = DecisionsReplay | RecordReplay | LiveReplay
