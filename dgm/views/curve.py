"""The lower bound of the leading agent and of the recommended one, over evaluations, spend and time.

The leader of a moment is the agent with the highest lower credible bound, whatever policy the run has: this rule
makes all runs comparable. The leader is not called best: the best agent is the one that the policy recommends. The
bound falls as well as rises, and so does the curve.
Verdicts that were withdrawn later count at no time.
"""

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dgm.analysis.best import best_in
from dgm.archive.events import TaskGraded
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.archive.watch import Watch
from dgm.domain import AgentId, Tally, Verdict
from dgm.stats import lower_bound

_ROWS = """
SELECT seq, at, kind,
    CASE kind WHEN 'task_graded' THEN json_extract(body, '$.agent') END,
    CASE kind WHEN 'task_graded' THEN json_extract(body, '$.verdict')
              ELSE json_extract(body, '$.usage[1]') + json_extract(body, '$.usage[2]') END,
    json_extract(body, '$.usage[3]')
FROM events WHERE seq > ? AND seq <= ? ORDER BY seq
"""
SPENDING = ("model_called", "call_booked", "model_learned")
"""Kinds of event that report the usage of models."""
_AT_ONCE = 256
"""Number of rows that are read at once; a long log is never held as a whole."""
_KEPT = 8
"""Factor by which the points kept on the way exceed the points left after thinning out at the end."""
_STALE = 4
"""Approximate number of heap entries for each agent; older ones are dropped."""
MOMENTS = 300
"""Maximum number of recommendations; one takes some milliseconds where there are many agents."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The agent with the highest lower bound at a moment."""

    evaluations: int
    """Resolved and unresolved evaluations until then."""
    usd: float
    tokens: int
    seconds: float
    """Wall time of the sessions; time between two sessions is left out."""
    agent: AgentId
    rate: float
    """The agent's rate on the search tasks until then."""
    lower_bound: float
    """The rate that the agent exceeds with a probability of 99 %, as in ``dgm.stats.lower_bound``."""


def compute_curve(
    run: Run, most: int = 400, pause: Callable[[], None] = lambda: None
) -> Sequence[CurvePoint]:
    """Return at most ``most`` points, where the leading agent changed in something, and the end of the run as the last.

    Empty where there was no verdict yet.

    Args:
        run: the run whose log is read.
        most: points, at least 2.
        pause: called every few rows. It may wait, to let other threads go on, or raise to end the work.
    """
    points: list[CurvePoint] = []
    step, last = 1, None
    for number, last in enumerate(_compute_points(run, pause)):
        if number % step == 0:
            points.append(last)
        if len(points) > _KEPT * most:
            points = points[::2]
            step *= 2
    if last is not None and points[-1] is not last:
        points.append(last)
    if len(points) <= most:
        return points
    apart = (len(points) - 1) / (most - 1)
    return [points[round(n * apart)] for n in range(most)]


def list_recommendations(run: Run, most: int = MOMENTS) -> Sequence[CurvePoint]:
    """Return the agent that the run's policy recommended after each evaluation, or after every n-th of very many.

    The last point is the run as far as its tree has read the log; empty without a verdict. A verdict that was
    withdrawn later counts until then, as it did for the search.
    """
    every = -(-run.tree.evaluations // most) or 1
    tree, points, graded = Tree(), list[CurvePoint](), 0
    for recorded in run.store.read(0, run.tree.seq):
        tree.apply(recorded)
        event = recorded.event
        if isinstance(event, TaskGraded) and event.outcome.verdict is not Verdict.INVALID:
            graded += 1
            if graded % every == 0:
                points.append(_recommendation(run, tree, points))
    if graded:
        points.append(_recommendation(run, tree, points))
    return points


def _recommendation(run: Run, tree: Tree, before: Sequence[CurvePoint]) -> CurvePoint:
    best = best_in(run, tree)
    own = tree.own(best)
    # A withdrawn verdict takes an evaluation away; a curve goes on from left to right.
    evaluations = max(tree.evaluations, before[-1].evaluations if before else 0)
    return CurvePoint(
        evaluations, tree.spend.usd, tree.spend.tokens, tree.wall_seconds, best, own.rate, lower_bound(own)
    )


def _read_rows(run: Run, pause: Callable[[], None]) -> Iterator[tuple[Any, ...]]:
    for before in range(0, run.tree.seq, _AT_ONCE):
        yield from run.store.query(_ROWS, (before, min(before + _AT_ONCE, run.tree.seq)))
        pause()


def _compute_points(run: Run, pause: Callable[[], None]) -> Iterator[CurvePoint]:
    watch, leader = Watch(), _LeaderHeap()
    withdrawn = run.store.withdrawn(run.tree.seq)
    usd, tokens, evaluations = 0.0, 0, 0
    shown = last = None
    for seq, at, kind, agent, said, cost in _read_rows(run, pause):
        if kind == "run_started":
            watch.begin(at)
        watch.passed(at)
        if kind in SPENDING:
            tokens += said
            usd += cost
        elif kind == "task_graded" and said in ("resolved", "unresolved") and seq not in withdrawn:
            evaluations += 1
            leader.graded(agent, said == "resolved")
            found = leader.now()
            if found != shown:
                shown = found
                last = CurvePoint(evaluations, usd, tokens, watch.seconds, *found)
                yield last
    if shown and last:
        end = CurvePoint(evaluations, usd, tokens, watch.seconds, *shown)
        if end != last:
            yield end


class _LeaderHeap:
    """The agent with the highest lower bound as verdicts arrive; ties as in ``dgm.policies.best_belief``."""

    def __init__(self) -> None:
        self._tallies: dict[int, Tally] = {}
        self._heap: list[tuple[float, int, int, Tally]] = []

    def graded(self, agent: int, resolved: bool) -> None:
        tally = self._tallies.get(agent, Tally()) + Tally(int(resolved), int(not resolved))
        self._tallies[agent] = tally
        heapq.heappush(self._heap, (-lower_bound(tally), -tally.n, agent, tally))
        if len(self._heap) > _STALE * len(self._tallies) + _AT_ONCE:
            self._heap = [entry for entry in self._heap if entry[3] is self._tallies[entry[2]]]
            heapq.heapify(self._heap)

    def now(self) -> tuple[AgentId, float, float]:
        """Return agent, rate and bound; outdated entries of the heap are dropped on the way."""
        while self._tallies[self._heap[0][2]].n != -self._heap[0][1]:
            heapq.heappop(self._heap)
        bound, _, agent, tally = self._heap[0]
        return AgentId(agent), tally.rate, -bound
