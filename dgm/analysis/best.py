"""The best agent of a run: the one that the recommendation of the run's policy names.

``best`` has this one meaning in every command, key and picture. Its lower bound is ``dgm.stats.lower_bound`` of its
own verdicts under every policy, whatever measure the policy itself recommends by. The agent with the plain top score
may be another one: luck counts in it.
"""

from pydantic import ValidationError

from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import Agent, AgentId, Evaluate
from dgm.errors import UserError

UNNAMED = "hgm"
"""The policy of a run that names none; not today's default, which may change."""


def best_of(run: Run) -> AgentId:
    """Return the agent that the run recommends now; the run must have one."""
    return best_in(run, run.tree)


def best_in(run: Run, tree: Tree) -> AgentId:
    """Return the agent that the run's policy recommends in ``tree``, a fold of the run's log up to any moment.

    A run without a named policy is read as ``hgm`` would read it; so is one whose plug-in policy is not
    installed here.
    """
    from dgm.config import PolicySettings
    from dgm.policies.recommend import best_belief  # it loads numpy
    from dgm.policies.registry import best_agent

    frozen = {"name": UNNAMED, **run.config.get("settings", {}).get("policy", {})}
    try:
        policy = PolicySettings(
            **{key: frozen[key] for key in ("name", "recommendation", "alpha") if key in frozen}
        )
        return best_agent(policy, tree)
    except (UserError, ValidationError):
        return best_belief(tree)


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
    matches = [agent for agent in agents if len(name) >= 4 and agent.commit.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    what = "several agents" if matches else "no agent"
    raise UserError(
        f"run {run.name}: {what} '{name}'; give an id from 0 to {len(agents) - 1}, 'best', 'seed' or a commit"
    )


def count_abandoned(tree: Tree, agent: AgentId) -> int:
    """Count an agent's tasks without a verdict whose evaluation failed too often to be tried again."""
    missing = {task for task, verdict in tree.verdicts(agent).items() if verdict is None}
    if missing:
        for what in (*tree.pending.values(), *tree.to_redo().values()):
            if isinstance(what, Evaluate) and what.agent == agent:
                missing.discard(what.task)
    return len(missing)
