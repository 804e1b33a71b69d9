"""Parents and children of agents: the part of the tree that only births change."""

from array import array
from collections.abc import Iterator, Sequence

from dgm.domain import ActionId, Agent, AgentId


class Genealogy:
    """All agents of a run, in order of birth. Views are live."""

    def __init__(self) -> None:
        self.depths = array("q")
        """Number of steps to the seed along first parents, by agent id."""
        self._agents: list[Agent] = []
        self._children: list[list[AgentId]] = []
        self._aims: dict[ActionId, str] = {}

    @property
    def agents(self) -> Sequence[Agent]:
        """All members of the archive; an agent's id is its index."""
        return self._agents

    def aim(self, agent: AgentId) -> str:
        """Return in one word the weakness that the agent's operator set out to fix; empty if it named none."""
        return self._aims.get(self._agents[agent].action, "")

    def children(self, agent: AgentId) -> Sequence[AgentId]:
        """Return the agents that name this one as a parent, in order of birth."""
        return self._children[agent]

    def first_parent(self, agent: AgentId) -> AgentId | None:
        """Return the lineage parent of the agent; ``None`` for a seed."""
        parents = self._agents[agent].parents
        return parents[0] if parents else None

    def depth(self, agent: AgentId) -> int:
        """Return the number of steps to the seed along first parents."""
        return self.depths[agent]

    def ancestors(self, agent: AgentId) -> Iterator[AgentId]:
        """Yield all ancestors down to the seed, each once and never before its descendants."""
        agents = self._agents
        parents = agents[agent].parents
        while len(parents) == 1:
            yield parents[0]
            parents = agents[parents[0]].parents
        waiting = set(parents)
        while waiting:
            nearest = max(waiting)
            yield nearest
            waiting.discard(nearest)
            waiting.update(agents[nearest].parents)

    def _add(self, agent: Agent) -> None:
        """Add a newborn agent; its id is the next free one."""
        self._agents.append(agent)
        self._children.append([])
        for parent in dict.fromkeys(agent.parents):
            self._children[parent].append(agent.id)
        self.depths.append(self.depths[agent.parents[0]] + 1 if agent.parents else 0)
