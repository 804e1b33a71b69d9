"""The line from the seed to one agent along first parents: the change and the results of each step."""

from collections.abc import Iterator
from dataclasses import dataclass

from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import Agent, AgentId, CommitId, Tally
from dgm.errors import UserError


@dataclass(frozen=True, slots=True)
class LineageStep:
    """One agent of a lineage."""

    agent: Agent
    own: Tally
    clade: Tally
    patch: bytes
    """Patch against the first parent; empty for the seed."""


class Lineage:
    """The agents from the seed to ``leaf``, the seed first."""

    def __init__(self, tree: Tree, leaf: AgentId) -> None:
        """Follow first parents up from ``leaf``.

        Raises:
            UserError: there is no such agent.
        """
        if not 0 <= leaf < len(tree.agents):
            known = f"they are 0 to {len(tree.agents) - 1}" if tree.agents else "the run has none yet"
            raise UserError(f"no agent {leaf}; {known}")
        line = [tree.agents[leaf]]
        while line[-1].parents:
            line.append(tree.agents[line[-1].parents[0]])
        self.agents: tuple[Agent, ...] = tuple(reversed(line))

    def steps(self, run: Run) -> Iterator[LineageStep]:
        """Yield each agent with its tallies and its patch against the previous one."""
        before: CommitId | None = None
        for agent in self.agents:
            patch = run.repository.diff(before, agent.commit) if before else b""
            yield LineageStep(agent, run.tree.own(agent.id), run.tree.clade(agent.id), patch)
            before = agent.commit
