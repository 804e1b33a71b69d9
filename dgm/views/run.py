"""A run at one moment: its state, progress, spend, best agent, forecast and failures."""

import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Self

from dgm.analysis.agents import best_of
from dgm.analysis.budgets import StandstillCount, count_ended_expansions
from dgm.analysis.dead_ends import find_dead_end, read_last_output
from dgm.archive.events import ActionLost, AgentStillborn, CallRefused, Recorded, TaskGraded
from dgm.archive.live import find_cut_checks
from dgm.archive.run import LIVING, Run, format_assignments, merge_tables, state, writer
from dgm.archive.tree import CANNOT_GO_ON, Tree
from dgm.domain import NO_ACTION, AgentId, Tally
from dgm.stats import lower_bound
from dgm.views.agents import AgentRow, agent_states
from dgm.views.progress import (
    ActionView,
    BudgetUse,
    ForecastView,
    ModelCallsView,
    NodeView,
    RatesView,
    measure_rates,
    predict,
    tree_budget_uses,
    view_actions,
    view_model_calls,
    view_nodes,
)
from dgm.views.promotion import PromotionsView
from dgm.views.values import RoleUsage, UsageView, View, role_usages

ROLES = ("solve", "improve", "diagnose")
"""Roles of ``dgm.models.choose``; importing it would load much that reading a run does not need."""
MOST_REASONS = 12
"""Number of different reasons that are counted separately."""
_TEST_NAMES = (
    (re.compile(r"(of [0-9]+ tests fail): .*"), r"\1"),
    (re.compile(r"(tests that (?:must pass fail|passed are broken)) \(.*?\)(?=;|$)"), r"\1"),
    (re.compile(r"\b(tampering): [^;]*"), r"\1"),
    (re.compile(r"\bthe tests of \S+ "), "the tests of a module "),
)
"""Patterns of benchmarks' reasons that name tests, which may be hidden ones."""
_DIGITS = re.compile(r"[0-9]+")
_HEX_NAMES = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b")
# LIKE avoids parsing the JSON of every verdict. Reasons are read by Python: SQL cannot return half a surrogate pair.


class EvaluationCounts(View):
    """Evaluations of a run, by verdict."""

    graded: int
    """Resolved and unresolved ones."""
    resolved: int
    unresolved: int
    invalid: int
    """Evaluations whose infrastructure failed; they are repeated and count nowhere."""


class RunSpend(UsageView):
    """Usage of all model calls of a run."""

    by: tuple[RoleUsage, ...]
    """The most expensive part comes first."""
    left_usd: float | None
    """The rest of the budget in USD; None without a limit."""


class LastEvent(View):
    """The newest event of the log."""

    seq: int
    at_unix_s: float
    age_s: float


class DeadEndView(View):
    """Why a search could not go on: its children died."""

    times: int
    """Children that died in a row."""
    stages: dict[str, int]
    """Those children by the stage that failed."""
    stage: str
    """The stage at which the last one failed."""
    reason: str
    action: int
    output: tuple[str, ...]
    """Last lines that the last child, or the agent that made it, printed."""
    may_help: str
    """Settings that may keep children from dying there."""


class ModelWait(View):
    """A model that waits for its provider now."""

    model: str
    words: str
    until: float
    """Unix time."""


class ModelNotes(View):
    """What the run learned about its models."""

    learned: dict[str, tuple[str, ...]]
    waits: ModelWait | None


class CutCall(UsageView):
    """A model call that was cut off by a process's death, at its worst-case usage."""

    action: int
    """0 for a check of a model before the run."""
    number: int
    model: str
    in_spend: bool
    """Whether the spend contains it."""


class ScoreGoal(View):
    """The lower bound at which the search ends."""

    lower_bound: float
    """The best agent's; 0 without an agent."""
    limit: float
    agent: int | None


class PatienceGoal(View):
    """Evaluations without a better agent after which the search ends."""

    evaluations_without_better: int
    limit: int
    earliest_left_s: float | None
    """Shortest time in which the limit can be reached, at the present rate."""


class GoalsView(View):
    """Goals beside the budget."""

    until_score: ScoreGoal | None = None
    patience: PatienceGoal | None = None


class ReasonCount(View):
    """A kind of reason, with ``#`` for numbers, and how often it occurred."""

    reason: str
    times: int


class StillbornCount(View):
    """Expansions without a child, by operator and stage."""

    operator: str
    stage: str
    times: int


class FailuresView(View):
    """Where evaluations and expansions failed; the most frequent reasons first."""

    stillborn: tuple[StillbornCount, ...]
    unresolved: tuple[ReasonCount, ...]
    invalid: tuple[ReasonCount, ...]
    lost: tuple[ReasonCount, ...]
    """Actions that ended without an outcome."""
    refused: tuple[ReasonCount, ...]
    """Requests of agents that the gateway refused, by code."""

    @classmethod
    def load(cls, run: Run) -> Self:
        """Count the failures in the log up to the last event that the run's tree has read.

        Raises:
            ArchiveCorrupt: an event is damaged.
        """
        stillborn: Counter[tuple[str, str]] = Counter()
        reasons: dict[str, Counter[str]] = {
            name: Counter() for name in ("unresolved", "invalid", "lost", "refused")
        }
        withdrawn = run.store.withdrawn(run.tree.seq)
        for item in run.store.read(0, run.tree.seq):
            match item.event:
                case AgentStillborn(_, dead):
                    stillborn[dead.operator, dead.stage] += 1
                case ActionLost(_, reason):
                    reasons["lost"][_kind_of_reason(reason)] += 1
                case CallRefused(_, _, status, code) if status >= 400:
                    reasons["refused"][code] += 1
                case TaskGraded(_, outcome) if outcome.verdict in reasons and item.seq not in withdrawn:
                    reasons[outcome.verdict][_kind_of_reason(outcome.reason)] += 1
        counts = {name: _most_frequent(counter) for name, counter in reasons.items()}
        return cls(
            stillborn=tuple(
                StillbornCount(operator=operator, stage=stage, times=times)
                for (operator, stage), times in sorted(
                    stillborn.items(), key=lambda item: (-item[1], item[0])
                )
            ),
            **counts,
        )


class CurriculumView(View):
    """The search tasks of a run with a curriculum, by their state now."""

    active: tuple[str, ...]
    """Tasks that agents are evaluated on."""
    pool: tuple[str, ...]
    """Tasks that may be drawn; those that were put back come last."""
    retired: tuple[str, ...]
    """Tasks that the recent agents all resolved when they were retired."""
    changes: int
    """Number of changes, the first draw included."""

    @classmethod
    def load(cls, tree: Tree) -> Self | None:
        """Return the tasks of a run; None without a curriculum."""
        state = tree.curriculum
        if not state.changes:
            return None
        return cls(active=state.active, pool=state.pool, retired=state.retired, changes=state.changes)


class RunView(View):
    """A run at one moment."""

    run: str
    folder: str
    kind: str
    """``search``, ``evaluation``, ``simulation`` or ``replay``."""
    state: str
    """``running``, ``paused``, ``interrupted``, or how it ended."""
    living: bool
    """Whether a process is writing the run."""
    paused: str
    """Why the run waits for its provider; empty if it does not."""
    benchmark: str
    models: dict[str, str]
    """Role → model; several models are joined with their weights."""
    policy: str
    sandbox: str
    seed: int
    """Random seed."""
    workers: int
    """Maximum number of parallel actions."""
    offline: bool
    """Whether a model is the offline one: a repair program, so that scores are a demonstration."""
    agents: int
    curriculum: CurriculumView | None = None
    """The search tasks by their state; None without a curriculum."""
    stillborn: dict[str, int]
    """Expansions without a child, by the stage that failed."""
    dead_end: DeadEndView | None
    evaluations: EvaluationCounts
    expansions: int
    """Ended expansions."""
    expansion_cost: float
    """Evaluations that an expansion takes from the budget."""
    running: int
    """Actions without an outcome."""
    waiting: int
    """Children that wait for the user's approval."""
    budget: dict[str, BudgetUse]
    """Limit → its use: ``evaluations``, ``agents``, ``usd``, ``tokens`` and ``seconds``, as far as they are set."""
    goals: GoalsView
    forecast: ForecastView | None
    """None if no process writes the run, or it is paused."""
    seconds: float
    """Wall time of all sessions."""
    spend: RunSpend
    refusals: int
    """Requests of agents that the gateway refused."""
    findings: int = 0
    """Number of findings against agents."""
    model_notes: ModelNotes
    cut_calls: tuple[CutCall, ...]
    changes: tuple[str, ...]
    """Settings changed since the run was created, as ``--set`` takes them."""
    withdrawn: int
    """Verdicts withdrawn after refusals of the model."""
    best: AgentRow | None
    """The agent that the policy recommends."""
    highest: AgentRow | None
    """The agent with the highest rate if it is not the best one; luck counts in it."""
    promotions: PromotionsView | None
    """None before the first round of promotion."""
    now_unix_s: float
    began_unix_s: float | None
    session_began_unix_s: float | None
    last_event: LastEvent | None
    under_way: tuple[ActionView, ...]
    """Actions without an outcome; nobody works on them unless ``living``."""
    model_calls: ModelCallsView | None
    nodes: tuple[NodeView, ...]
    rates: RatesView | None
    """Recent rates; None if no process writes the run, or too little happened."""
    failures: FailuresView

    @classmethod
    def load(cls, run: Run, now: float | None = None) -> Self:
        """Read a run once; a ``RunReader`` follows it.

        Args:
            run: the run.
            now: Unix time; None: the clock's.
        """
        return RunReader(run).view(now)  # type: ignore[return-value]


class RunReader:
    """Views of a run that may be growing; slow parts are computed again only after new events."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self._best: AgentId | None = None
        self._best_of = (-1, -1)
        self._failures: FailuresView | None = None
        self._failures_of = -1
        self._standstill: StandstillCount | None = None

    def follow(self) -> Sequence[Recorded]:
        """Read the events appended since the last call, and return them."""
        events = self.run.follow()
        if self._standstill is not None:
            self._standstill.follow(events)
        return events

    @property
    def living(self) -> bool:
        """Whether a process is writing the run."""
        return state(self.run) in LIVING

    def best(self) -> AgentId | None:
        """Return the recommended agent; None without an agent."""
        tree = self.run.tree
        known = tree.evaluations, len(tree.agents)
        if known != self._best_of:
            self._best, self._best_of = best_of(self.run) if tree.agents else None, known
        return self._best

    def failures(self) -> FailuresView:
        """Return the counts of failures."""
        if self._failures is None or self._failures_of != self.run.tree.seq:
            self._failures, self._failures_of = FailuresView.load(self.run), self.run.tree.seq
        return self._failures

    def view(self, now: float | None = None) -> RunView:
        """Return the run as far as its log is folded."""
        run, tree = self.run, self.run.tree
        now = time.time() if now is None else now
        label = state(run)
        living, best, states = label in LIVING, self.best(), agent_states(run)
        settings, models = run.settings(), models_of(run)
        total = Tally(int(tree.own_resolved.sum()), int(tree.own_unresolved.sum()))
        rates = measure_rates(run, now) if living else None
        uses = tree_budget_uses(tree, max(0.0, now - tree.last_at) if living and tree.last_at else 0.0)
        forecast = None
        if living and not tree.paused:
            uses, forecast = predict(uses, rates, tree.budget.expansion_cost, now)
        highest = find_highest(tree, best)
        limit = tree.budget.usd
        return RunView(
            run=run.name,
            folder=str(run.folder),
            kind=run.kind,
            state=label,
            living=living,
            paused=tree.paused,
            benchmark=settings["benchmark"],
            models=models,
            policy=settings["policy"]["name"],
            sandbox=run.sandbox(),
            seed=settings["seed"],
            workers=settings["workers"],
            offline="offline" in models.values(),
            agents=len(tree.agents),
            curriculum=CurriculumView.load(tree),
            stillborn=dict(sorted(tree.stillborn.items())),
            dead_end=view_dead_end(run),
            evaluations=EvaluationCounts(
                graded=tree.evaluations,
                resolved=total.resolved,
                unresolved=total.unresolved,
                invalid=tree.invalid,
            ),
            expansions=count_ended_expansions(tree),
            expansion_cost=tree.budget.expansion_cost,
            running=len(tree.pending),
            waiting=len(tree.waiting),
            budget=uses,
            goals=self._view_goals(best, rates, paused=bool(tree.paused)),
            forecast=forecast,
            seconds=tree.wall_seconds,
            spend=RunSpend.of(
                tree.spend,
                by=role_usages(tree.spend_by),
                left_usd=None if limit is None else max(0.0, limit - tree.spend.usd),
            ),
            refusals=tree.refusals,
            findings=int(tree.own_findings.sum()),
            model_notes=_view_model_notes(run, now),
            cut_calls=tuple(view_cut_calls(run)),
            changes=tuple(format_assignments(changes_of(run))),
            withdrawn=tree.withdrawn,
            best=None if best is None else AgentRow.of(tree, tree.agents[best], best, states),
            highest=None if highest is None else AgentRow.of(tree, tree.agents[highest], best, states),
            promotions=PromotionsView.load(run),
            now_unix_s=now,
            began_unix_s=run.config.get("created"),
            session_began_unix_s=tree.session_began or None,
            last_event=LastEvent(seq=tree.seq, at_unix_s=tree.last_at, age_s=max(0.0, now - tree.last_at))
            if tree.seq
            else None,
            under_way=view_actions(run, now),
            model_calls=view_model_calls(run, now) if living else None,
            nodes=tuple(view_nodes(run)) if living else (),
            rates=rates,
            failures=self.failures(),
        )

    def _view_goals(self, best: AgentId | None, rates: RatesView | None, *, paused: bool) -> GoalsView:
        tree, score, patience = self.run.tree, None, None
        budget = tree.budget
        if budget.score is not None:
            bound = 0.0 if best is None else lower_bound(tree.own(best))
            score = ScoreGoal(lower_bound=bound, limit=budget.score, agent=best)
        if budget.patience is not None:
            if self._standstill is None or self._standstill.patience != budget.patience:
                self._standstill = StandstillCount(self.run)
            without = self._standstill.standstill.without_better
            rate = rates.evaluations_per_hour if rates and not paused else 0.0
            patience = PatienceGoal(
                evaluations_without_better=without,
                limit=budget.patience,
                earliest_left_s=max(0, budget.patience - without) / rate * 3600.0 if rate else None,
            )
        return GoalsView(until_score=score, patience=patience)


def find_highest(tree: Tree, best: AgentId | None) -> AgentId | None:
    """Return the agent with the highest rate; None if that is the best one, or no agent was evaluated.

    None, too, once a curriculum changed the tasks: plain rates do not compare then. Ties go to the agent with more
    verdicts, then to the older one.
    """
    rated = [(tally.rate, tally.n, -agent.id) for agent in tree.agents if (tally := tree.own(agent.id)).n]
    if not rated or best is None or tree.curriculum.changes > 1:
        return None
    rate, _, agent = max(rated)
    return None if -agent == best or rate <= tree.own(best).rate else AgentId(-agent)


def models_of(run: Run) -> dict[str, str]:
    """Return role → the name of its model; several models read ``2 one + 1 other``, with their weights."""
    settings = run.settings()
    models = settings.get("models", {})
    return {role: _model_text(models.get(role)) or settings["model"] for role in ROLES}


def _model_text(model: str | Sequence[Mapping[str, Any]] | None) -> str:
    if model is None or isinstance(model, str):
        return model or ""
    if len(model) == 1:
        return str(model[0]["model"])
    return " + ".join(f"{share['weight']:g} {share['model']}" for share in model)


def models_text(models: Mapping[str, str]) -> str:
    """Return one name if all roles have the same model, else each model with its roles."""
    roles: dict[str, list[str]] = {}
    for role, model in models.items():
        roles.setdefault(model, []).append(role)
    if len(roles) == 1:
        return next(iter(roles))
    return ", ".join(f"{model} ({', '.join(members)})" for model, members in roles.items())


def changes_of(run: Run) -> Mapping[str, Any]:
    """Return the current values of the settings that were changed since the run was created; nested."""
    changes: Mapping[str, Any] = {}
    for _, change in run.tree.changes:
        changes = merge_tables(changes, change)
    return changes


def view_dead_end(run: Run) -> DeadEndView | None:
    """Return why the children of a search died that could not go on; None for any other run."""
    if run.tree.stop_reason != CANNOT_GO_ON:
        return None
    from dgm.config import LimitSettings

    default = LimitSettings().stillborn_in_a_row
    end = find_dead_end(run.tree, run.settings()["limits"].get("stillborn_in_a_row", default))
    if end is None:
        return None
    return DeadEndView(
        times=end.times,
        stages=dict(end.stages),
        stage=end.last.outcome.stage,
        reason=end.last.outcome.reason,
        action=end.last.action,
        output=tuple(read_last_output(run, end)),
        may_help=end.may_help,
    )


def _view_model_notes(run: Run, now: float) -> ModelNotes:
    facts = run.tree.model_facts
    waits = facts.waits
    going_on = waits is not None and waits.until > now and not run.tree.stop_reason
    return ModelNotes(
        learned={model: tuple(words) for model, words in facts.words.items()},
        waits=ModelWait(model=waits.model, words=waits.words, until=waits.until)
        if waits and going_on
        else None,
    )


def view_cut_calls(run: Run) -> Sequence[CutCall]:
    """Return unanswered calls that a process's death cut off; without a writer also those that it left open."""
    calls = run.tree.model_calls
    cut = [(key, call.model, call.usage, True) for key, call in calls.cut.items()]
    if state(run) not in LIVING:
        cut += [(key, call.model, call.most, False) for key, call in calls.open.items()]
    if writer(run.folder) is None:
        checks = enumerate(find_cut_checks(run.folder), 1)
        cut += [((NO_ACTION, number), model, worst, False) for number, (model, worst) in checks]
    return [
        CutCall.of(usage, action=action, number=number, model=model, in_spend=booked)
        for (action, number), model, usage, booked in sorted(cut, key=lambda item: item[0])
    ]


def _most_frequent(counter: Counter[str]) -> tuple[ReasonCount, ...]:
    """Return the ``MOST_REASONS`` most frequent reasons, and all others as one."""
    pairs = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    rest = sum(times for _, times in pairs[MOST_REASONS:])
    shown = [*pairs[:MOST_REASONS], *([("others", rest)] if rest else [])]
    return tuple(ReasonCount(reason=reason, times=times) for reason, times in shown)


def _kind_of_reason(reason: str) -> str:
    """Return the reason without case-specific details: names of tests, numbers, hexadecimal names, line breaks."""
    text = " ".join(reason.split())
    for pattern, kept in _TEST_NAMES:
        text = pattern.sub(kept, text)
    return _DIGITS.sub("#", _HEX_NAMES.sub("#", text))
