"""The parts of a policy: a gate, a parent rule, an evaluation rule, a task rule, an operator rule, a recommendation.

Each is a pure function of the tree and a random stream. A part with state folds it from the events (``Observer``), so
that decisions stay a function of the log and the seed. Parts of one policy that need the same state get it from
``PolicyContext.shared``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import AgentId, Expand, TaskId

S = TypeVar("S")


class Gate(Protocol):
    """The rule that decides whether to expand or to evaluate."""

    def expands(self, tree: Tree, rng: Random) -> bool:
        """Return whether the archive should grow now; only called where it may (``limits.may_expand``)."""
        ...


class ParentRule(Protocol):
    """The rule that decides which agent has a child."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """Return one parent, or two for a crossover; none where nobody should have a child now."""
        ...


class EvaluationRule(Protocol):
    """The rule that decides which agent is evaluated."""

    def target(self, tree: Tree, rng: Random) -> AgentId | None:
        """Return an agent with an untried task; ``None`` where nobody should be evaluated now."""
        ...


class TaskRule(Protocol):
    """The rule that decides on which task an agent is evaluated."""

    def task(self, tree: Tree, agent: AgentId, rng: Random) -> TaskId:
        """Return a task that ``agent`` has not tried; only called where there is one."""
        ...


class OperatorRule(Protocol):
    """The rule that decides which operator makes a child."""

    def choose(self, tree: Tree, parents: tuple[AgentId, ...], rng: Random) -> Expand | None:
        """Return the expansion of ``parents``, with a mate where the operator wants one.

        Return ``None`` where no child can be made now. There is at least one parent.
        """
        ...


class OneOperator:
    """The operator rule that always names the same operator, which needs nothing."""

    def __init__(self, operator: str) -> None:
        self._operator = operator

    def choose(self, tree: Tree, parents: tuple[AgentId, ...], rng: Random) -> Expand | None:  # noqa: ARG002
        """Return the expansion of the given parents; draw nothing at random."""
        return Expand(parents, self._operator)


class Recommendation(Protocol):
    """The rule that decides which agent the search hands out."""

    def recommend(self, tree: Tree) -> AgentId:
        """Return the best agent by the tree alone.

        Readers of any run call this, so a recommendation keeps no state of events.
        """
        ...


@runtime_checkable
class Observer(Protocol):
    """A holder of state that is a fold of the events."""

    def observe(self, event: Recorded) -> None:
        """Fold one event into the state; called once for every event, in order, before the next decision."""
        ...


@dataclass(slots=True)
class PolicyContext:
    """The inputs from which a part is made."""

    operator: str = "self-edit"
    """What a whole policy names in its expansions; a run of several operators puts one of them in its place."""
    alpha: float = 0.6
    """The exponent of ``hgm``'s gate."""
    operators: OperatorRule | None = None
    """Chooses among several operators, or waits for what one needs; None: always ``operator``."""
    _shared: dict[Any, Any] = field(default_factory=dict)

    def shared(self, make: Callable[[], S]) -> S:
        """Return this policy's one object by ``make``; make it when the first part asks for it."""
        if make not in self._shared:
            self._shared[make] = make()
        return cast("S", self._shared[make])

    @property
    def observers(self) -> Sequence[Observer]:
        """The shared objects that fold events, in the order of their making."""
        return [item for item in self._shared.values() if isinstance(item, Observer)]
