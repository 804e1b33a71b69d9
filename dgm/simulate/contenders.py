"""A policy as people write it for a study: its name, and settings of its own in place of the defaults.

``lineage+gate=hgm`` is ``lineage`` with the gate of ``hgm``; every setting of ``[policy]`` can stand after a ``+``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from dgm.archive.tree import Tree
from dgm.config import PolicySettings, Settings, resolve
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.policies.registry import best_agent, open_policy
from dgm.protocols import Policy
from dgm.simulate.oracle import oracle, truly_best
from dgm.simulate.world import World

ORACLE = "oracle"
"""Stands for the policy that knows the truth, which no settings can name."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy at the start of a trial."""

    policy: Policy
    recommend: Callable[[Tree], AgentId]


def contender(text: str, world: World) -> Contender:
    """A fresh policy for one trial.

    Raises:
        UserError: as ``policy_settings``.
    """
    if text == ORACLE:
        return Contender(oracle(world), lambda tree: truly_best(world, tree))
    chosen = policy_settings(text)
    return Contender(open_policy(Settings(policy=chosen)), lambda tree: best_agent(chosen, tree))


def check_policy(text: str) -> None:
    """Makes sure that there is such a policy.

    Raises:
        UserError: as ``policy_settings``.
    """
    if text != ORACLE:
        policy_settings(text)


def policy_settings(text: str) -> PolicySettings:
    """The settings that the text stands for.

    Raises:
        UserError: an unknown policy, setting or part.
    """
    name, *changes = text.split("+")
    if not name or not all("=" in change for change in changes):
        raise UserError(f"policy '{text}': expected NAME or NAME+KEY=VALUE, for example hgm+alpha=0.5")
    if any(change.partition("=")[0].strip().strip("\"'") == "name" for change in changes):
        raise UserError(f"policy '{text}': the name stands before the first '+', and cannot be set again")
    try:
        settings = resolve(None, [f"policy.{change}" for change in changes], {"policy.name": name})
        open_policy(settings)
    except UserError as error:
        raise UserError(f"policy '{text}': {error}") from error
    return settings.policy
