"""The line from the seed to the best agent, step by step: why each was made, what it changed, what it brought."""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.archive.lineage import Lineage
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import Agent, AgentId, Tally
from dgm.errors import DgmError
from dgm.search.exam import Comparison, paired


@dataclass(frozen=True, slots=True)
class Step:
    """One agent of the line."""

    agent: Agent
    own: Tally
    clade: Tally
    aim: str
    against: Comparison | None
    """Parent and agent on the tasks that both tried; None for the seed."""
    patch: bytes
    """Against the first parent; empty for the seed."""
    damage: str = ""
    """Why there is no patch, where it cannot be read."""

    @property
    def gain(self) -> float | None:
        """Rate minus the first parent's, on the tasks that both tried; None where there are none."""
        pairs = self.against
        return pairs.second.rate - pairs.first.rate if pairs and pairs.first.n else None


@dataclass(frozen=True, slots=True)
class Line:
    """The steps that are shown."""

    agents: Sequence[AgentId]
    """All of them, the seed first."""
    steps: Sequence[Step]
    left_out: int
    """Steps between the first and the second that is shown."""


def line(run: Run, best: AgentId, most: int = 60) -> Line:
    """The line of ``best``: the seed, and the last of the others, at most ``most`` in all."""
    members = Lineage(run.tree, best).agents
    shown = members if len(members) <= most else (members[0], *members[len(members) - most + 1 :])
    steps = [_step(run, agent) for agent in shown]
    return Line([agent.id for agent in members], steps, len(members) - len(shown))


def _step(run: Run, agent: Agent) -> Step:
    tree = run.tree
    own, clade = tree.own(agent.id), tree.clade(agent.id)
    aim = tree.aim(agent.id)
    if not agent.parents:
        return Step(agent, own, clade, aim, None, b"")
    parent = agent.parents[0]
    against = _against(tree, parent, agent.id)
    try:
        patch, damage = run.repository.diff(tree.agents[parent].commit, agent.commit), ""
    except DgmError as error:
        # Where the run lies on its machine is nobody's business who reads the report.
        patch, damage = b"", str(error).replace(f"{run.folder}/", "")
    return Step(agent, own, clade, aim, against, patch, damage)


def _against(tree: Tree, parent: AgentId, child: AgentId) -> Comparison:
    before, after = tree.verdicts(parent), tree.verdicts(child)
    return paired((task, before.get(task), verdict) for task, verdict in after.items())
