"""How far a search is: use of its budget, parallel actions, recent rates, and when each limit will end it."""

from collections.abc import Mapping, Sequence
from typing import Literal

from dgm.analysis.budgets import sum_evaluations_spent
from dgm.archive.events import (
    AgentBorn,
    AgentStillborn,
    CallBooked,
    ChildProposed,
    Event,
    ModelCalled,
    ModelLearned,
    TaskGraded,
)
from dgm.archive.live import read_live
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import NO_ACTION, Action, ActionId, AgentId, Budget, Evaluate, Stillborn
from dgm.views.values import View

WINDOW_S = 1_800.0
"""Length in seconds of the recent past in which rates are measured; longer if little happens."""
WINDOW_STEPS = 10
"""The window grows until this many actions ended in it, back to the session's start at most."""
LEAST_STEPS = 3
"""Fewer ended actions than this give no rates."""

_OF_ACTION = "SELECT at, kind FROM events WHERE action = ? ORDER BY seq"


class ActionView(View):
    """An action that was started and has no outcome yet."""

    action: int
    kind: Literal["evaluate", "expand"]
    agent: int
    """The agent that is evaluated, or the first parent of the child."""
    task: str | None = None
    """The task of an evaluation."""
    attempt: int | None = None
    """Number of the attempt at the task, from 1."""
    parents: tuple[int, ...] = ()
    """Parents of the child that is made."""
    operator: str | None = None
    aim: str | None = None
    """The weakness that the operator wants to fix; None if it names none."""
    since_unix_s: float
    """Last start."""
    age_s: float
    tries: int
    """Number of starts."""
    model_calls: int
    """Answered model calls since the last start."""
    last_event_age_s: float
    """Seconds since its start, or since its last answered call."""


class ModelCallsView(View):
    """Open model calls of a running search."""

    under_way: int
    """Calls that their model is working on."""
    waiting: int
    """Calls that wait: for the budget, for the provider, or for the next try."""
    oldest_wait_unix_s: float | None
    oldest_wait_s: float | None


class NodeView(View):
    """One container engine, or one node of a cluster, that runs sandboxes."""

    name: str
    """Address of the engine, or name of the node."""
    slots: int
    """Sandboxes of one processor that fit there at once."""
    busy: int
    """Sandboxes that are open there."""
    opened: int
    """Sandboxes opened there in this session."""
    failures: int
    """Failures in this session."""
    images: int
    """Images built or pulled there in this session."""
    problem: str
    """Why no sandbox is opened there now; empty if it is used."""


class RatesView(View):
    """Progress and spend per unit of time, measured in the recent past."""

    window_s: float
    """Length in seconds of the measured time."""
    events_per_hour: float
    evaluations_per_hour: float
    expansions_per_hour: float
    tokens_per_second: float
    usd_per_hour: float


class BudgetUse(View):
    """One limit of a run, and its use."""

    used: float
    limit: float
    left: float
    """The rest of the limit, at least 0."""
    share: float
    """used / limit; above 1 if more was used."""
    left_s: float | None = None
    """Seconds until the limit is reached at the present rates; None if not known."""
    unknown: Literal["not yet known", "not used at the present rate"] | None = None
    """Why ``left_s`` is not known; None in a run that no process writes."""


class ForecastView(View):
    """When the budget will end the search, at the present rates."""

    binding: str | None
    """The limit that is reached first; None if none is known."""
    complete: bool
    """Whether all limits are known; otherwise an unknown one may be reached earlier."""
    left_s: float | None
    ends_unix_s: float | None


def budget_uses(
    budget: Budget, *, evaluations: float, agents: int, usd: float, tokens: int, seconds: float
) -> dict[str, BudgetUse]:
    """Return the use of each limit that the budget sets, by its name."""
    pairs = {
        "evaluations": (evaluations, budget.evaluations),
        "agents": (agents, budget.agents),
        "usd": (usd, budget.usd),
        "tokens": (tokens, budget.tokens),
        "seconds": (seconds, budget.seconds),
    }
    return {
        name: BudgetUse(
            used=used, limit=limit, left=max(limit - used, 0.0), share=used / limit if limit > 0 else 1.0
        )
        for name, (used, limit) in pairs.items()
        if limit is not None
    }


def tree_budget_uses(tree: Tree, idle_s: float = 0.0) -> dict[str, BudgetUse]:
    """Return the use of each limit of a run; ``idle_s`` is the time since its last event, which counts as well."""
    return budget_uses(
        tree.budget,
        evaluations=sum_evaluations_spent(tree),
        agents=len(tree.agents),
        usd=tree.spend.usd,
        tokens=tree.spend.tokens,
        seconds=tree.wall_seconds + idle_s,
    )


def nearest_limit(uses: Mapping[str, BudgetUse]) -> str | None:
    """Return the limit with the largest used share; a limit of agents ends births only and is left out."""
    ending = [name for name in uses if name != "agents"]
    return max(ending, key=lambda name: uses[name].share, default=None)


def predict(
    uses: Mapping[str, BudgetUse], rates: RatesView | None, expansion_cost: float, now: float
) -> tuple[dict[str, BudgetUse], ForecastView]:
    """Return the uses with the time until each limit is reached, and the forecast of the run's end."""
    timed = {
        name: use if name == "agents" else _predict_limit(name, use, rates, expansion_cost)
        for name, use in uses.items()
    }
    known = {name: use.left_s for name, use in timed.items() if use.left_s is not None}
    binding = min(known, key=known.__getitem__, default=None)
    left_s = None if binding is None else known[binding]
    return timed, ForecastView(
        binding=binding,
        complete=all(use.unknown != "not yet known" for use in timed.values()),
        left_s=left_s,
        ends_unix_s=None if left_s is None else now + left_s,
    )


def _predict_limit(name: str, use: BudgetUse, rates: RatesView | None, expansion_cost: float) -> BudgetUse:
    if use.left == 0.0 or name == "seconds":
        return use.model_copy(update={"left_s": use.left})
    if rates is None:
        return use.model_copy(update={"unknown": "not yet known"})
    per_second = {
        "evaluations": (rates.evaluations_per_hour + expansion_cost * rates.expansions_per_hour) / 3600.0,
        "usd": rates.usd_per_hour / 3600.0,
        "tokens": rates.tokens_per_second,
    }[name]
    if per_second <= 0.0:
        return use.model_copy(update={"unknown": "not used at the present rate"})
    return use.model_copy(update={"left_s": use.left / per_second})


def measure_rates(run: Run, now: float) -> RatesView | None:
    """Return the rates of the recent past; None if too little happened since the session began."""
    began, window_s = run.tree.session_began, WINDOW_S
    while True:
        start = max(began, now - window_s)
        first = _first_event_since(run, start)
        events = [item.event for item in run.store.read(first - 1, run.tree.seq + 1 - first)]
        evaluations = sum(isinstance(e, TaskGraded) and e.outcome.tally.n for e in events)
        expansions = sum(map(_ends_expansion, events))
        ended = evaluations + expansions
        if ended >= WINDOW_STEPS or start <= began:
            break
        window_s *= 4
    if ended < LEAST_STEPS or now <= start:
        return None
    per_hour = 3600.0 / (now - start)
    usages = [e.usage for e in events if isinstance(e, ModelCalled | CallBooked | ModelLearned)]
    return RatesView(
        window_s=now - start,
        events_per_hour=len(events) * per_hour,
        evaluations_per_hour=evaluations * per_hour,
        expansions_per_hour=expansions * per_hour,
        tokens_per_second=sum(usage.tokens for usage in usages) / (now - start),
        usd_per_hour=sum(usage.usd for usage in usages) * per_hour,
    )


def _ends_expansion(event: Event) -> bool:
    """Return whether an expansion ended; a child that a user decided on ended when it was proposed."""
    match event:
        case ChildProposed():
            return True
        case AgentBorn(action, decided=decided) | AgentStillborn(action, Stillborn(decided=decided)):
            return action > NO_ACTION and not decided
        case _:
            return False


def _first_event_since(run: Run, start: float) -> int:
    """Find the first event at ``start`` or later by bisection; times grow with numbers."""
    low, high = 1, run.tree.seq + 1
    while low < high:
        middle = (low + high) // 2
        (at,) = run.store.query("SELECT at FROM events WHERE seq = ?", (middle,))[0]
        low, high = (middle + 1, high) if at < start else (low, middle)
    return low


def view_actions(run: Run, now: float) -> tuple[ActionView, ...]:
    """Return the actions without an outcome, in the order of their last starts."""
    return tuple(_view_action(run, action, what, now) for action, what in run.tree.pending.items())


def _view_action(run: Run, action: ActionId, what: Action, now: float) -> ActionView:
    since = last_at = 0.0
    calls = 0
    for at, kind in run.store.query(_OF_ACTION, (action,)):
        if kind == "action_started":
            since, calls = at, 0
        calls += kind == "model_called"
        last_at = at
    evaluating = isinstance(what, Evaluate)
    return ActionView(
        action=action,
        kind="evaluate" if evaluating else "expand",
        agent=agent_of(what),
        task=what.task if isinstance(what, Evaluate) else None,
        attempt=what.attempt + 1 if isinstance(what, Evaluate) else None,
        parents=() if isinstance(what, Evaluate) else what.parents,
        operator=None if isinstance(what, Evaluate) else what.operator,
        aim=None if isinstance(what, Evaluate) else what.aim or None,
        since_unix_s=since,
        age_s=max(0.0, now - since),
        tries=run.tree.tries(action),
        model_calls=calls,
        last_event_age_s=max(0.0, now - last_at),
    )


def agent_of(what: Action) -> AgentId:
    """Return the agent that an action works on: the evaluated one, or the first parent."""
    return what.agent if isinstance(what, Evaluate) else what.parents[0]


def view_model_calls(run: Run, now: float) -> ModelCallsView | None:
    """Return the open calls that the writing process publishes; None if there is none."""
    calls = read_live(run.folder).calls
    if calls is None:
        return None
    since = calls.oldest_wait
    return ModelCallsView(
        under_way=calls.under_way,
        waiting=calls.waiting,
        oldest_wait_unix_s=since,
        oldest_wait_s=None if since is None else max(0.0, now - since),
    )


def view_nodes(run: Run) -> Sequence[NodeView]:
    """Return the engines or nodes that the writing process publishes."""
    return tuple(NodeView.model_validate(node, from_attributes=True) for node in read_live(run.folder).nodes)
