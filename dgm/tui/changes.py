"""The news of a run, for the screens to draw."""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.archive.events import (
    ActionStarted,
    AgentBorn,
    AgentStillborn,
    ChildProposed,
    Recorded,
    TaskGraded,
    VerdictWithdrawn,
)
from dgm.domain import AgentId, Evaluate


@dataclass(frozen=True, slots=True)
class RunChanges:
    """The news since the last question."""

    events: Sequence[Recorded] = ()
    born: range = range(0)
    """New agents."""
    whole: bool = False
    """Whether everything may have changed, because the run was read from its beginning."""
    facts: bool = False
    """Whether the best agent, the state of the run, the reading progress or a problem changed."""

    def __bool__(self) -> bool:
        return bool(self.events or self.born or self.whole or self.facts)

    @property
    def verdicts(self) -> set[AgentId]:
        """Agents whose verdicts changed: one came, or was withdrawn."""
        found: set[AgentId] = set()
        for recorded in self.events:
            match recorded.event:
                case TaskGraded(_, outcome):
                    found.add(outcome.agent)
                case VerdictWithdrawn(what=what):
                    found.add(what.agent)
                case _:
                    pass
        return found

    @property
    def agents(self) -> set[AgentId]:
        """Agents that the events are about; the clades of their ancestors change with them."""
        found = self.verdicts
        for recorded in self.events:
            match recorded.event:
                case ActionStarted(_, Evaluate(agent)):
                    found.add(agent)
                case AgentBorn():
                    found.update((recorded.event.id, *recorded.event.parents))
                case ActionStarted(_, what) if not isinstance(what, Evaluate):
                    found.update(what.parents)
                case AgentStillborn(_, outcome) | ChildProposed(_, outcome):
                    found.update(outcome.parents)
        return found


def find_newest_agent(events: Sequence[Recorded]) -> AgentId | None:
    """Return the agent of the last of the events that is about one; None without such an event."""
    for recorded in reversed(events):
        concerned = RunChanges((recorded,)).agents
        if concerned:
            return max(concerned)
    return None
