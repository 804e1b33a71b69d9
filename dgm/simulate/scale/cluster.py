"""The simulation: slots that ask one head for work, pull images, call models through the head, and fail.

A queue of events on virtual time. The head serves in the order of arrival, one thing at a time, as its thread does.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from dgm.simulate.scale.plan import HeadCosts, ScalePlan, ScaleResult

_SPREAD = 0.6
"""Standard deviation of the logarithm of an evaluation's seconds."""
_Step = Callable[[], None]


@dataclass(slots=True)
class _Head:
    """One thread, by the time at which it is free again."""

    free_at: float = 0.0
    busy_s: float = 0.0

    def serve(self, now: float, seconds: float) -> float:
        """Return the time at which something that arrives now is done."""
        self.free_at = max(now, self.free_at) + seconds
        self.busy_s += seconds
        return self.free_at


@dataclass(slots=True)
class _Node:
    """A node: what it has, and how often it has failed."""

    epoch: int = 0
    back_at: float = 0.0
    has_at: dict[int, float] = field(default_factory=dict)
    """Image → time at which it is there."""
    link_free_at: float = 0.0
    slots: "list[_Slot]" = field(default_factory=list)


@dataclass(slots=True)
class _Slot:
    """One sandbox of a node after the other."""

    node: _Node
    doing: str = "head"
    """Its present state, a key of ``ScaleResult.shares``."""
    since: float = 0.0
    calls_left: int = 0
    part_s: float = 0.0
    """Seconds of work between two model calls."""
    fails_after: int = -1
    """Number of further parts after which the evaluation fails; negative: it does not."""
    at_work: bool = False
    """True while it has an evaluation."""


class ScaleSimulation:
    """One plan, performed once."""

    def __init__(self, plan: ScalePlan, costs: HeadCosts) -> None:
        self._plan = plan
        self._costs = costs
        self._rng = Random(f"scale/{plan.seed}")
        self._ends = plan.hours * 3600.0
        self._now = 0.0
        self._queue: list[tuple[float, int, _Step]] = []
        self._number = 0
        self._begin_s = costs.begin_s(plan)
        self._head = _Head()
        self._registry_free_at = 0.0
        self._spent = dict.fromkeys(("working", "opening", "head", "pulling", "away"), 0.0)
        self._evaluations = self._lost = self._pulls = 0
        # The mean of a log-normal is exp(mu + sigma² / 2).
        self._mu = math.log(plan.evaluation_s) - _SPREAD**2 / 2

    def perform(self) -> ScaleResult:
        """Return what comes of the plan."""
        nodes = [_Node() for _ in range(self._plan.nodes)]
        for node in nodes:
            node.slots = [_Slot(node) for _ in range(self._plan.slots)]
            self._plan_failure(node)
            for slot in node.slots:
                self._ask(slot)
        while self._queue and self._queue[0][0] <= self._ends:
            self._now, _, step = heapq.heappop(self._queue)
            step()
        self._now = self._ends
        for node in nodes:
            for slot in node.slots:
                self._turn(slot, slot.doing)
        total = self._ends * self._plan.nodes * self._plan.slots
        return ScaleResult(
            self._plan,
            self._evaluations,
            self._lost,
            self._pulls,
            {name: seconds / total for name, seconds in self._spent.items()},
            # What is queued beyond the end was not done yet.
            min(1.0, (self._head.busy_s - max(0.0, self._head.free_at - self._ends)) / self._ends),
        )

    def _at(self, time: float, step: _Step) -> None:
        self._number += 1
        heapq.heappush(self._queue, (time, self._number, step))

    def _at_slot(self, time: float, slot: _Slot, step: Callable[[_Slot], None]) -> None:
        """Let a slot go on at a time, unless its node fails before."""
        epoch = slot.node.epoch

        def go_on() -> None:
            if slot.node.epoch == epoch:
                step(slot)

        self._at(time, go_on)

    def _turn(self, slot: _Slot, doing: str) -> None:
        self._spent[slot.doing] += self._now - slot.since
        slot.doing, slot.since = doing, self._now

    def _ask(self, slot: _Slot) -> None:
        """Ask the head for an evaluation."""
        self._turn(slot, "head")
        self._at_slot(self._head.serve(self._now, self._begin_s), slot, self._place)

    def _place(self, slot: _Slot) -> None:
        """Get the image, and open the sandboxes."""
        slot.at_work = True
        there_at = self._image_there_at(slot.node)
        self._turn(slot, "pulling")
        self._at_slot(max(self._now, there_at), slot, self._open)

    def _image_there_at(self, node: _Node) -> float:
        """Return when a node has the image of a task; a pull that is under way is waited for."""
        image = self._rng.randrange(self._plan.images)
        known = node.has_at.get(image)
        if known is not None:
            return known
        plan = self._plan
        self._registry_free_at = max(self._now, self._registry_free_at) + plan.image_mb / plan.registry_mb_s
        node.link_free_at = max(self._now, node.link_free_at) + plan.image_mb / plan.node_mb_s
        node.has_at[image] = max(self._registry_free_at, node.link_free_at)
        self._pulls += 1
        return node.has_at[image]

    def _open(self, slot: _Slot) -> None:
        self._turn(slot, "opening")
        self._at_slot(self._now + self._plan.sandbox_s, slot, self._begin)

    def _begin(self, slot: _Slot) -> None:
        plan = self._plan
        seconds = self._rng.lognormvariate(self._mu, _SPREAD)
        slot.calls_left, slot.part_s = plan.calls, seconds / (plan.calls + 1)
        fails = plan.failures > 0.0 and self._rng.random() < plan.failures
        slot.fails_after = self._rng.randrange(plan.calls + 1) if fails else -1
        self._work(slot)

    def _work(self, slot: _Slot) -> None:
        self._turn(slot, "working")
        self._at_slot(self._now + slot.part_s, slot, self._end_part)

    def _end_part(self, slot: _Slot) -> None:
        """After some work: fail, ask the model, or end."""
        if slot.fails_after == 0:
            self._lose(slot)
            self._ask(slot)
        elif slot.calls_left:
            slot.calls_left -= 1
            slot.fails_after -= slot.fails_after > 0
            self._turn(slot, "head")
            self._at_slot(self._head.serve(self._now, self._costs.call_s), slot, self._work)
        else:
            self._turn(slot, "head")
            self._at_slot(self._head.serve(self._now, self._costs.end_s), slot, self._end)

    def _end(self, slot: _Slot) -> None:
        self._evaluations += 1
        slot.at_work = False
        self._ask(slot)

    def _lose(self, slot: _Slot) -> None:
        """Record that an evaluation failed."""
        self._lost += 1
        slot.at_work = False
        self._head.serve(self._now, self._costs.end_s)

    def _plan_failure(self, node: _Node) -> None:
        if self._plan.node_failures > 0.0:
            hours = self._rng.expovariate(self._plan.node_failures)
            self._at(self._now + hours * 3600.0, lambda: self._fail(node))

    def _fail(self, node: _Node) -> None:
        """Let a node go away for a while; what ran there is lost."""
        node.epoch += 1
        back_at = self._now + self._plan.outage_s
        # A pull that was under way begins anew.
        node.has_at = {image: at for image, at in node.has_at.items() if at <= self._now}
        node.link_free_at = back_at
        for slot in node.slots:
            if slot.at_work:
                self._lose(slot)
            self._turn(slot, "away")
            self._at_slot(back_at, slot, self._ask)
        self._at(back_at, lambda: self._plan_failure(node))
