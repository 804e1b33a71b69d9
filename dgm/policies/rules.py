"""The parts of a policy: a gate, a parent rule, an evaluation rule, a task rule, an operator rule, a recommendation.

Each is a pure function of the tree and a random stream. A part that keeps state folds it out of the events
(``Observer``), so that decisions stay a function of the log and the seed; parts of one policy that need the same
state ask ``Kit.shared`` for it.
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
    """Expand or evaluate."""

    def expands(self, tree: Tree, rng: Random) -> bool:
        """Whether the archive should grow now. Only asked where it may (``limits.may_expand``)."""
        ...


class ParentRule(Protocol):
    """Who has a child."""

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:
        """One parent, or two for a crossover; none where nobody should have a child now."""
        ...


class EvaluationRule(Protocol):
    """Who is evaluated."""

    def target(self, tree: Tree, rng: Random) -> AgentId | None:
        """An agent with an untried task; ``None`` where nobody should be evaluated now."""
        ...


class TaskRule(Protocol):
    """On what."""

    def task(self, tree: Tree, agent: AgentId, rng: Random) -> TaskId:
        """A task that ``agent`` has not tried; there is one."""
        ...


class OperatorRule(Protocol):
    """By which operator a child is made."""

    def choose(self, tree: Tree, parents: tuple[AgentId, ...], rng: Random) -> Expand | None:
        """The expansion of ``parents``, a mate added where the operator wants one; ``None`` where none can be made now.

        There is at least one parent.
        """
        ...


class OneOperator:
    """Always the same operator, which needs nothing."""

    def __init__(self, operator: str) -> None:
        self._operator = operator

    def choose(self, tree: Tree, parents: tuple[AgentId, ...], rng: Random) -> Expand | None:  # noqa: ARG002
        """The expansion of the parents as they are; nothing is left to chance."""
        return Expand(parents, self._operator)


class Recommendation(Protocol):
    """Which agent the search hands out."""

    def recommend(self, tree: Tree) -> AgentId:
        """The best agent by what the tree says; asked by readers of any run, so it keeps no state of events."""
        ...


@runtime_checkable
class Observer(Protocol):
    """State that is a fold of the events."""

    def observe(self, event: Recorded) -> None:
        """Folds one event in; called for every event, in order, once, before the next decision is asked for."""
        ...


@dataclass(slots=True)
class Kit:
    """What a part is made from."""

    operator: str = "self-edit"
    """What a whole policy names in its expansions; a run of several operators puts one of them in its place."""
    alpha: float = 0.6
    """The exponent of ``hgm``'s gate."""
    operators: OperatorRule | None = None
    """Chooses among several operators, or waits for what one needs; None: always ``operator``."""
    _shared: dict[Any, Any] = field(default_factory=dict)

    def shared(self, make: Callable[[], S]) -> S:
        """The one object of this policy that ``make`` gives; made when the first part asks for it."""
        if make not in self._shared:
            self._shared[make] = make()
        return cast("S", self._shared[make])

    @property
    def observers(self) -> Sequence[Observer]:
        """Of the shared objects, those that fold events, in the order of their making."""
        return [item for item in self._shared.values() if isinstance(item, Observer)]
