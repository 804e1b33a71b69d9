"""The best agent of a run: what the recommendation of its own policy says."""

from dgm.archive.run import Run
from dgm.config import PolicySettings
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.policies.best_belief import best_belief
from dgm.policies.registry import best_agent

UNNAMED = "hgm"
"""The policy of a run that names none; not today's default, which may change."""


def best_of(run: Run) -> AgentId:
    """The agent that the run hands out now; it must have one.

    A run that names no policy, or one that is a plug-in that is not installed here, is read as ``hgm`` would read it.
    """
    said = {"name": UNNAMED, **run.config.get("settings", {}).get("policy", {})}
    policy = PolicySettings(**{key: said[key] for key in ("name", "recommendation", "alpha") if key in said})
    try:
        return best_agent(policy, run.tree)
    except UserError:
        return best_belief(run.tree)
