"""The line from the seed to the best agent, step by step: the reason for each, its changes, its gain."""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.analysis.lineage import Lineage
from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import Agent, AgentId, Tally
from dgm.errors import DgmError
from dgm.evaluation.exam import Comparison, compare_verdicts


@dataclass(frozen=True, slots=True)
class PathStep:
    """One agent of the line."""

    agent: Agent
    own: Tally
    clade: Tally
    aim: str
    against: Comparison | None
    """Comparison of parent and agent on the tasks that both tried; None for the seed."""
    patch: bytes
    """The patch against the first parent; empty for the seed."""
    damage: str = ""
    """The reason why the patch cannot be read; empty otherwise."""

    @property
    def gain(self) -> float | None:
        """Rate minus the first parent's, on the tasks that both tried; None where there are none."""
        pairs = self.against
        return pairs.second.rate - pairs.first.rate if pairs and pairs.first.n else None


@dataclass(frozen=True, slots=True)
class LineagePath:
    """The steps that are shown."""

    agents: Sequence[AgentId]
    """All agents of the line, the seed first."""
    steps: Sequence[PathStep]
    left_out: int
    """Number of steps left out between the first and the second that is shown."""


def read_lineage(run: Run, best: AgentId, most: int = 60) -> LineagePath:
    """Return the line of ``best``: the seed, and the last of the others, at most ``most`` in all."""
    members = Lineage(run.tree, best).agents
    shown = members if len(members) <= most else (members[0], *members[len(members) - most + 1 :])
    steps = [_read_step(run, agent) for agent in shown]
    return LineagePath([agent.id for agent in members], steps, len(members) - len(shown))


def _read_step(run: Run, agent: Agent) -> PathStep:
    tree = run.tree
    own, clade = tree.own(agent.id), tree.clade(agent.id)
    aim = tree.aim(agent.id)
    if not agent.parents:
        return PathStep(agent, own, clade, aim, None, b"")
    parent = agent.parents[0]
    against = _compare_verdicts(tree, parent, agent.id)
    try:
        patch, damage = run.repository.diff(tree.agents[parent].commit, agent.commit), ""
    except DgmError as error:
        # Readers of the report have no business with the run's place on its machine.
        patch, damage = b"", str(error).replace(f"{run.folder}/", "")
    return PathStep(agent, own, clade, aim, against, patch, damage)


def _compare_verdicts(tree: Tree, parent: AgentId, child: AgentId) -> Comparison:
    before, after = tree.verdicts(parent), tree.verdicts(child)
    return compare_verdicts((task, before.get(task), verdict) for task, verdict in after.items())
