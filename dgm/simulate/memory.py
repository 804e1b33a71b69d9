"""A run that is kept nowhere: the log of a simulated search, for as long as its process lives."""

from collections.abc import Callable, Iterable

from dgm.archive.events import AgentBorn, Event, Recorded
from dgm.archive.tree import Tree
from dgm.domain import Action, ActionId, AgentId, Born, Evaluate, Tally
from dgm.search.orders import EvaluateOrder, ExpandOrder, Order


class Memory:
    """The counterpart of ``RunController`` without a run on disk; it holds no evidence."""

    def __init__(self, clock: Callable[[], float], *, keep: bool) -> None:
        """Begin an empty log.

        Args:
            clock: returns seconds, for the time of each event.
            keep: whether events are kept once they are folded into the tree; only a policy with state of its own
                needs them.
        """
        self.tree = Tree()
        self._clock = clock
        self._keep = keep
        self._events: list[Recorded] = []

    def append(self, event: Event) -> Recorded:
        """Fold the event into the tree, and return it with its number and time."""
        recorded = Recorded(self.tree.seq + 1, self._clock(), event)
        self.tree.apply(recorded)
        if self._keep:
            self._events.append(recorded)
        return recorded

    def since(self, seq: int) -> Iterable[Recorded]:
        """Return the events after number ``seq``; none where they are not kept."""
        return self._events[seq:]

    def with_evidence(self, action: ActionId, what: Action, tree: Tree) -> Action:  # noqa: ARG002  (none to add)
        """Return the action unchanged."""
        return what

    def order(self, action: ActionId, what: Action) -> Order:
        """Return the worker's order, without evidence and tallies."""
        agents = self.tree.agents
        if isinstance(what, Evaluate):
            return EvaluateOrder(action, what, agents[what.agent])
        parents = tuple(agents[parent] for parent in what.parents)
        return ExpandOrder(action, what, parents, self.tree.child_number(action), Tally(), (), {})

    def answered(self, now: float) -> None:
        """Do nothing: no child waits for a person."""

    def birth(self, action: ActionId, outcome: Born) -> AgentBorn:
        """Return the event of a birth; duplicates are not checked, because no two children of a world are the same."""
        agent = AgentId(len(self.tree.agents))
        return AgentBorn(
            action,
            agent,
            outcome.parents,
            outcome.commit,
            outcome.operator,
            outcome.rationale,
            outcome.cost,
        )
