"""Who is whose child: the part of the tree that only births change."""

from array import array
from collections.abc import Iterator, Sequence

from dgm.domain import ActionId, Agent, AgentId


class Genealogy:
    """All agents of a run, in the order of their births; views are live."""

    def __init__(self) -> None:
        self.depths = array("q")
        """Steps to the seed, along first parents."""
        self._agents: list[Agent] = []
        self._children: list[list[AgentId]] = []
        self._aims: dict[ActionId, str] = {}

    @property
    def agents(self) -> Sequence[Agent]:
        """Every member of the archive; an agent's id is its index."""
        return self._agents

    def aim(self, agent: AgentId) -> str:
        """Return the weakness that the agent's operator set out to mend, in one word; empty where it named none."""
        return self._aims.get(self._agents[agent].action, "")

    def children(self, agent: AgentId) -> Sequence[AgentId]:
        """The agents that name this one as a parent, by birth."""
        return self._children[agent]

    def first_parent(self, agent: AgentId) -> AgentId | None:
        """The parent whose line the agent stands on; ``None`` for a seed."""
        parents = self._agents[agent].parents
        return parents[0] if parents else None

    def depth(self, agent: AgentId) -> int:
        """Steps to the seed, along first parents."""
        return self.depths[agent]

    def ancestors(self, agent: AgentId) -> Iterator[AgentId]:
        """Parents, their parents … down to the seed, each once and never before its descendants."""
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
        """Note a birth; the agent's id is the next one."""
        self._agents.append(agent)
        self._children.append([])
        for parent in dict.fromkeys(agent.parents):
            self._children[parent].append(agent.id)
        self.depths.append(self.depths[agent.parents[0]] + 1 if agent.parents else 0)
