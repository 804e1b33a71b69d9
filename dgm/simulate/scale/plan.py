"""The numbers that a simulation of many nodes is made from, and those that come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from dgm.errors import UserError

MOST_SLOTS = 200_000
"""Maximum number of slots of one simulation, for its time and memory."""


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """A cluster, its work, and what fails."""

    nodes: int
    slots: int = 32
    """Sandboxes of a node at once."""
    evaluation_s: float = 60.0
    """Mean seconds of an evaluation without what the head takes; single ones are spread as real ones are."""
    calls: int = 20
    """Model calls of an evaluation."""
    children: float = 0.05
    """Children that are made for each evaluation; only what the head takes for them is counted."""
    sandbox_s: float = 1.5
    """Seconds to open the sandboxes of an evaluation on a node that has the image."""
    images: int = 1
    """Images that tasks work in; each is pulled by each node that needs it."""
    image_mb: float = 1_000.0
    node_mb_s: float = 100.0
    """Maximum that one node pulls in a second."""
    registry_mb_s: float = 1_000.0
    """Maximum that the registry gives to all nodes together in a second."""
    node_failures: float = 0.01
    """Failures of a node in an hour."""
    outage_s: float = 300.0
    """Seconds for which a node that failed is away."""
    failures: float = 0.0
    """Share of evaluations that fail by themselves and are repeated."""
    hours: float = 1.0
    """Virtual time."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the ranges; raise ``UserError`` for the first number that makes no sense."""
        counts = {"nodes": self.nodes, "slots": self.slots, "images": self.images}
        for name, count in counts.items():
            if count < 1:
                raise UserError(f"{name} = {count}: expected a number from 1 on")
        if self.nodes * self.slots > MOST_SLOTS:
            raise UserError(
                f"nodes = {self.nodes}, slots = {self.slots}: more than {MOST_SLOTS:,} slots; simulate fewer"
            )
        above = ("evaluation_s", "image_mb", "node_mb_s", "registry_mb_s", "outage_s", "hours")
        for name in above:
            if not getattr(self, name) > 0.0:
                raise UserError(f"{name} = {getattr(self, name)}: expected a number above 0")
        if min(self.calls, self.children, self.sandbox_s, self.node_failures) < 0:
            raise UserError("calls, children, sandbox_s and node_failures: expected numbers from 0 on")
        if not 0.0 <= self.failures < 1.0:
            raise UserError(f"failures = {self.failures}: expected a share from 0 to below 1")


@dataclass(frozen=True, slots=True)
class HeadCosts:
    """Seconds of the head's one thread; all else waits meanwhile."""

    decision_s: float
    """For the policy's decision on one step."""
    journal_s: float
    """To record the beginning and the end of one evaluation."""
    child_s: float
    """To decide on a child, keep its source and record it."""
    call_s: float
    """For one model call: taken, checked, journaled and answered."""
    sandboxes_s: float
    """To open, use and close the sandboxes of one evaluation."""

    def sped_up(self, factor: float) -> "HeadCosts":
        """Return the costs of a head that is so many times as fast as this machine."""
        return HeadCosts(*(getattr(self, each.name) / factor for each in fields(self)))

    def begin_s(self, plan: ScalePlan) -> float:
        """Return the seconds at the beginning of an evaluation, its share of a child included."""
        return self.decision_s + plan.children * self.child_s + self.end_s

    @property
    def end_s(self) -> float:
        """The seconds at the end of an evaluation."""
        return (self.journal_s + self.sandboxes_s) / 2

    def evaluation_s(self, plan: ScalePlan) -> float:
        """Return the seconds that the head takes for a whole evaluation."""
        return self.begin_s(plan) + plan.calls * self.call_s + self.end_s


@dataclass(frozen=True, slots=True)
class ScaleResult:
    """The result of a simulation. Shares are of the time of all slots, and add up to 1."""

    plan: ScalePlan
    evaluations: int
    """Evaluations that ended with a verdict."""
    lost: int
    """Evaluations that failed and were repeated."""
    pulls: int
    """Images that nodes pulled."""
    shares: Mapping[str, float]
    """Shares of ``working``, ``opening``, ``head``, ``pulling`` and ``away``."""
    head_busy: float
    """Share of the time in which the head was at work."""

    @property
    def busy(self) -> float:
        """Share of the slots with a sandbox at work or being opened."""
        return self.shares["working"] + self.shares["opening"]

    @property
    def evaluations_per_hour(self) -> float:
        """Evaluations with a verdict in an hour of virtual time."""
        return self.evaluations / self.plan.hours


BUSY_AIM = 0.95
"""Share of busy slots for which the end of one head is told."""


def slots_of_one_head(plan: ScalePlan, costs: HeadCosts) -> int:
    """Return how many slots one head keeps busy to ``BUSY_AIM``, if nothing else held them up.

    Each slot wants one evaluation in ``evaluation_s + sandbox_s`` of the head; the head has time for one in
    ``HeadCosts.evaluation_s``. Waits for the head grow near that, which this number does not count.
    """
    return int((plan.evaluation_s + plan.sandbox_s) / BUSY_AIM / costs.evaluation_s(plan))


@dataclass(frozen=True, slots=True)
class ScaleStudy:
    """The results of several clusters with one head."""

    costs: HeadCosts
    results: Sequence[ScaleResult]
    """In the order of the plans."""

    @property
    def slots_of_one_head(self) -> Sequence[int]:
        """For each plan, how many slots one head keeps busy."""
        return [slots_of_one_head(result.plan, self.costs) for result in self.results]

    def record(self) -> dict[str, Any]:
        """Return the document that ``dgm simulate --nodes --json`` prints."""
        clusters = [
            {
                **asdict(result),
                "busy": result.busy,
                "evaluations_per_hour": result.evaluations_per_hour,
                "slots_of_one_head": slots,
            }
            for result, slots in zip(self.results, self.slots_of_one_head, strict=True)
        ]
        return {"head_s": asdict(self.costs), "clusters": clusters}
