"""A policy as people write it for a study: its name, and settings of its own in place of the defaults.

``lineage+gate=hgm`` is ``lineage`` with the gate of ``hgm``; every setting of ``[policy]`` can stand after a ``+``. In
the family ``operators`` also who makes children: ``hgm+operators.choice=bandit`` chooses among all of them by what
their children are worth, ``hgm+operators.weights.invent=3`` takes one more often than the others (without either, all
alike), ``hgm+operator=invent+operator=module`` takes those alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dgm.archive.tree import Tree
from dgm.config import PolicySettings, Settings, resolve
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.policies.registry import best_agent, open_policy, refuse_idle
from dgm.protocols import Policy
from dgm.simulate.families import OPERATORS
from dgm.simulate.operators import NEEDS
from dgm.simulate.oracle import oracle, truly_best
from dgm.simulate.world import World

ORACLE = "oracle"
"""Stands for the policy that knows the truth, which no settings can name."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A policy at the start of a trial."""

    policy: Policy
    recommend: Callable[[Tree], AgentId]


def contender(text: str, world: World, family: str = "") -> Contender:
    """A fresh policy for one trial in a world of the family.

    Raises:
        UserError: as ``policy_settings``; what it says of operators means nothing in this family, or the reverse.
    """
    check_fits(text, family)
    if text == ORACLE:
        return Contender(oracle(world), lambda tree: truly_best(world, tree))
    settings = contender_settings(text)
    if family != OPERATORS:
        settings = Settings(policy=settings.policy)
    return Contender(open_policy(settings, NEEDS), lambda tree: best_agent(settings.policy, tree))


def check_policy(text: str) -> None:
    """Makes sure that there is such a policy, and that all it is told means something to it.

    Asked before a trial, and not by ``policy_settings``, which readers of results ask too.

    Raises:
        UserError: as ``policy_settings``, and as ``refuse_idle``.
    """
    if text == ORACLE:
        return
    settings = policy_settings(text)
    try:
        refuse_idle(settings)
    except UserError as error:
        raise UserError(f"policy '{text}': {error}") from error


def check_fits(text: str, family: str) -> None:
    """Makes sure that the policy says of operators what this family asks.

    Raises:
        UserError: it does not.
    """
    check_policy(text)
    about = [change for change in text.split("+")[1:] if _is_about_operators(change)]
    if about and family != OPERATORS:
        raise UserError(
            f"policy '{text}': '{about[0]}' means nothing in the family '{family}', whose worlds have one operator; "
            f"use --family {OPERATORS}"
        )
    if text == ORACLE and family == OPERATORS:
        raise UserError(
            f"policy '{ORACLE}' knows nothing of operators; for --family {OPERATORS} name others with --policy"
        )


def policy_settings(text: str) -> PolicySettings:
    """The settings of the policy alone that the text stands for.

    Raises:
        UserError: an unknown policy, setting or part.
    """
    return contender_settings(text).policy


def contender_settings(text: str) -> Settings:
    """All settings that the text stands for, those of the choice among simulated operators too.

    Raises:
        UserError: an unknown policy, setting, part or operator.
    """
    name, *changes = text.split("+")
    if not name or not all("=" in change for change in changes):
        raise UserError(f"policy '{text}': expected NAME or NAME+KEY=VALUE, for example hgm+alpha=0.5")
    if any(change.partition("=")[0].strip().strip("\"'") == "name" for change in changes):
        raise UserError(f"policy '{text}': the name stands before the first '+', and cannot be set again")
    try:
        flags = {"policy.name": name, "operator": "+".join(_operators(changes) or NEEDS)}
        given = [_placed(change) for change in changes if _key(change) != "operator"]
        settings = resolve(None, given, flags)
        open_policy(settings, NEEDS)
    except UserError as error:
        raise UserError(f"policy '{text}': {error}") from error
    return settings


def _operators(changes: Sequence[str]) -> list[str]:
    """Those that the text names one by one."""
    named = [change.partition("=")[2].strip() for change in changes if _key(change) == "operator"]
    for operator in named:
        if operator not in NEEDS:
            raise UserError(
                f"unknown operator '{operator}' in simulated worlds; there are: {', '.join(NEEDS)}"
            )
    return named


def _placed(change: str) -> str:
    """A change as the settings' files have it."""
    key = _key(change)
    if (
        key.startswith("operators.")
        and key != "operators.choice"
        and not key.startswith("operators.weights.")
    ):
        raise UserError(
            f"'{key}' means nothing in simulated worlds; there are operators.choice and operators.weights"
        )
    return change if _is_about_operators(change) else f"policy.{change}"


def _is_about_operators(change: str) -> bool:
    return _key(change) == "operator" or _key(change).startswith("operators.")


def _key(change: str) -> str:
    return change.partition("=")[0].strip()
