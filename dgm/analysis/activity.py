"""The present activity of a search: steps under way, recent events, distance to its ends. Reads, never writes."""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.analysis.budget_use import budget_uses_of
from dgm.analysis.budgets import count_ended_expansions
from dgm.analysis.forecast import (
    Forecast,
    ObservedProgress,
    ProgressRates,
    compute_rates,
    predict_ends,
)
from dgm.archive.history import LIVING, state
from dgm.archive.live_calls import LiveCalls, read_live_calls
from dgm.archive.live_nodes import NodeState, read_live_nodes
from dgm.archive.run import Run
from dgm.domain import Action, ActionId

WINDOW_S = 1_800.0
"""Seconds of the recent past in which rates are measured; longer if little happens."""
ENOUGH = 10
"""Minimum number of steps that end in the window; the window grows until then, back to the session's start at most."""
_OF_ACTION = "SELECT seq, at, kind FROM events WHERE action = ? ORDER BY seq"
# The seed's birth belongs to action 0; a child that a person decided on ended when it was proposed.
_RECENT = """
SELECT count(*),
    sum(kind = 'task_graded' AND json_extract(body, '$.verdict') <> 'invalid'),
    sum(action > 0 AND kind IN ('agent_born', 'agent_stillborn', 'child_proposed')
        AND coalesce(json_extract(body, '$.decided'), '') = ''),
    sum(CASE WHEN kind IN ('model_called', 'call_booked', 'model_learned')
        THEN coalesce(json_extract(body, '$.usage[1]'), 0) + coalesce(json_extract(body, '$.usage[2]'), 0) END),
    sum(CASE WHEN kind IN ('model_called', 'call_booked', 'model_learned')
        THEN coalesce(json_extract(body, '$.usage[3]'), 0) END)
FROM events WHERE seq >= ? AND seq <= ?
"""


@dataclass(frozen=True, slots=True)
class RunningStep:
    """A step that was started and has no outcome yet."""

    id: ActionId
    action: Action
    since: float
    """Unix time of its last start."""
    calls: int
    """Model calls that were answered since then."""
    last_at: float
    """Unix time of its last event: its start, or the last answered call."""
    tries: int
    """Number of its starts."""


@dataclass(frozen=True, slots=True)
class Activity:
    """A search at one moment."""

    now: float
    """Unix time."""
    living: bool
    """Whether a process is writing the run."""
    paused: bool
    under_way: tuple[RunningStep, ...]
    rates: ProgressRates | None
    """Recent rates, or those of the whole run if no process writes it; None if too little happened."""
    forecast: Forecast | None
    """None if no process writes the run, or it is paused."""
    calls: LiveCalls | None = None
    """Open model calls; None if no process writes the run, or it does not tell them."""
    nodes: tuple[NodeState, ...] = ()
    """The engines or nodes of the sandboxes; none if no process writes the run, or it has one engine."""


def read_activity(run: Run, now: float) -> Activity:
    """Return what the run is doing at ``now`` (Unix time)."""
    tree, said = run.tree, state(run)
    living = said in LIVING
    if not living:
        return Activity(
            now, False, False, find_running_steps(run), compute_rates(_observe_whole_run(run)), None
        )
    idle_s = max(0.0, now - tree.last_at) if tree.last_at else 0.0
    rates = compute_rates(_observe_recent(run, now))
    paused = said == "paused"
    uses = budget_uses_of(tree, idle_s)
    ends = None if paused else predict_ends(uses, rates, tree.budget.expansion_cost)
    calls, nodes = read_live_calls(run.folder), tuple(read_live_nodes(run.folder))
    return Activity(now, True, paused, find_running_steps(run), rates, ends, calls, nodes)


def find_running_steps(run: Run) -> tuple[RunningStep, ...]:
    """Return the steps that were started and have no outcome, in the order of their last starts."""
    return tuple(_running_step(run, action, what) for action, what in run.tree.pending.items())


def _running_step(run: Run, action: ActionId, what: Action) -> RunningStep:
    since = last_at = 0.0
    calls = 0
    for _, at, kind in run.store.query(_OF_ACTION, (action,)):
        if kind == "action_started":
            since, calls = at, 0
        calls += kind == "model_called"
        last_at = at
    return RunningStep(action, what, since, calls, last_at, run.tree.tries(action))


def _observe_whole_run(run: Run) -> ObservedProgress:
    tree = run.tree
    expansions = count_ended_expansions(tree)
    spend = tree.spend
    return ObservedProgress(
        tree.wall_seconds,
        tree.seq,
        tree.evaluations + expansions,
        tree.evaluations,
        expansions,
        spend.tokens,
        spend.usd,
    )


def _observe_recent(run: Run, now: float) -> ObservedProgress:
    began = run.tree.session_began
    window_s = WINDOW_S
    while True:
        start = max(began, now - window_s)
        observed = _observe_since(run, start, now)
        if observed.ended >= ENOUGH or start <= began:
            return observed
        window_s *= 4


def _observe_since(run: Run, start: float, now: float) -> ObservedProgress:
    first = _find_first_since(run, start)
    events, evaluations, expansions, tokens, usd = run.store.query(_RECENT, (first, run.tree.seq))[0]
    evaluations, expansions = evaluations or 0, expansions or 0
    return ObservedProgress(
        max(0.0, now - start),
        events,
        evaluations + expansions,
        evaluations,
        expansions,
        int(tokens or 0),
        usd or 0.0,
    )


def _find_first_since(run: Run, start: float) -> int:
    """Return the number of the first event at ``start`` or later; assume that times grow with numbers."""
    low, high = 1, run.tree.seq + 1
    while low < high:
        middle = (low + high) // 2
        if _time_of(run, middle) < start:
            low = middle + 1
        else:
            high = middle
    return low


def _time_of(run: Run, seq: int) -> float:
    rows: Sequence[tuple[float]] = run.store.query("SELECT at FROM events WHERE seq = ?", (seq,))
    return rows[0][0]
