"""The names by which a person calls an agent of a run."""

from dgm.analysis.best import best_of
from dgm.archive.run import Run
from dgm.domain import Agent, AgentId
from dgm.errors import UserError


def find_agent(run: Run, name: str) -> Agent:
    """Return an agent by id, ``best``, ``seed``, or the start of its commit.

    Raises:
        UserError: there is none, or several fit.
    """
    agents = run.tree.agents
    if not agents:
        raise UserError(f"run {run.name} has no agent yet; wait until its seed is born")
    if name == "best":
        return agents[best_of(run)]
    if name == "seed":
        return agents[0]
    if name.isdecimal() and int(name) < len(agents):
        return agents[AgentId(int(name))]
    fitting = [agent for agent in agents if len(name) >= 4 and agent.commit.startswith(name)]
    if len(fitting) == 1:
        return fitting[0]
    what = "several agents" if fitting else "no agent"
    raise UserError(
        f"run {run.name}: {what} '{name}'; give an id from 0 to {len(agents) - 1}, 'best', 'seed' or a commit"
    )
