"""The best agent of a run: the one that the recommendation of the run's policy names, with its lower bound.

``best`` has this one meaning in every command, key and picture. An agent with a higher score may exist: the plain top
score is called *highest so far*.
"""

from dataclasses import dataclass

from pydantic import ValidationError

from dgm.archive.run import Run
from dgm.archive.tree import Tree
from dgm.domain import AgentId, Evaluate, Tally
from dgm.errors import UserError
from dgm.stats import lower_bound

UNNAMED = "hgm"
"""The policy of a run that names none; not today's default, which may change."""


@dataclass(frozen=True, slots=True)
class BestAgent:
    """The recommended agent and its own verdicts."""

    agent: AgentId
    own: Tally
    """Its graded evaluations on the search tasks."""
    lower_bound: float
    """The rate on the search tasks that the agent exceeds with a probability of 99 %.

    It is ``dgm.stats.lower_bound`` of ``own``, the 1st percentile of Beta(1 + resolved, 1 + unresolved)
    (arXiv:2510.21614, section 3). From 0 to 1; 0.01 without a verdict. The measure is the same under every
    policy, whatever measure the policy itself recommends by.
    """
    given_up: int = 0
    """Number of its tasks whose evaluation was given up; they are not in ``own``."""


def find_best(run: Run) -> BestAgent:
    """Return the agent that the run recommends now, and its lower bound; the run must have an agent."""
    return rate_best(run.tree, best_of(run))


def rate_best(tree: Tree, agent: AgentId) -> BestAgent:
    """Return the tree's verdicts on ``agent``, which must be the recommended one."""
    own = tree.own(agent)
    return BestAgent(agent, own, lower_bound(own), count_abandoned(tree, agent))


def best_of(run: Run) -> AgentId:
    """Return the agent that the run recommends now; the run must have one."""
    return best_in(run, run.tree)


def best_in(run: Run, tree: Tree) -> AgentId:
    """Return the agent that the run's policy recommends in ``tree``, a fold of the run's log up to any moment.

    A run without a named policy is read as ``hgm`` would read it; so is one whose plug-in policy is not
    installed here.
    """
    from dgm.config import PolicySettings
    from dgm.policies.best_belief import best_belief  # the policies load numpy
    from dgm.policies.registry import best_agent

    said = {"name": UNNAMED, **run.config.get("settings", {}).get("policy", {})}
    try:
        policy = PolicySettings(
            **{key: said[key] for key in ("name", "recommendation", "alpha") if key in said}
        )
        return best_agent(policy, tree)
    except (UserError, ValidationError):
        return best_belief(tree)


def count_abandoned(tree: Tree, agent: AgentId) -> int:
    """Count an agent's tasks without a verdict whose evaluation failed too often to be tried again."""
    missing = {task for task, verdict in tree.verdicts(agent).items() if verdict is None}
    if missing:
        for what in (*tree.pending.values(), *tree.to_redo().values()):
            if isinstance(what, Evaluate) and what.agent == agent:
                missing.discard(what.task)
    return len(missing)
