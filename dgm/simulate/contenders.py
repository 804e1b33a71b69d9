"""A policy as people write it for a study: its name, and settings of its own in place of the defaults.

``lineage+gate=hgm`` is ``lineage`` with the gate of ``hgm``; every setting of ``[policy]`` can stand after a ``+``. In
the family ``operators`` the text also says which operators make children:

- ``hgm+operators.choice=bandit`` chooses among all operators by the worth of their children.
- ``hgm+operators.weights.invent=3`` takes one operator more often than the others. Without either, all are equally
  likely.
- ``hgm+operator=invent+operator=module`` takes only those operators.
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
    """Return a fresh policy for one trial in a world of the family.

    Raises:
        UserError: the cases of ``policy_settings`` and ``check_fits``.
    """
    check_fits(text, family)
    if text == ORACLE:
        return Contender(oracle(world), lambda tree: truly_best(world, tree))
    settings = contender_settings(text)
    if family != OPERATORS:
        settings = Settings(policy=settings.policy)
    return Contender(open_policy(settings, NEEDS), lambda tree: best_agent(settings.policy, tree))


def check_policy(text: str) -> None:
    """Refuse an unknown policy, and settings that have no effect on the policy.

    Called before a trial, but not by ``policy_settings``, which readers of results use too.

    Raises:
        UserError: the cases of ``policy_settings`` and ``refuse_idle``.
    """
    if text == ORACLE:
        return
    settings = policy_settings(text)
    try:
        refuse_idle(settings)
    except UserError as error:
        raise UserError(f"policy '{text}': {error}") from error


def check_fits(text: str, family: str) -> None:
    """Refuse a policy that does not fit the family.

    Raises:
        UserError: the cases of ``check_policy``; the text has settings of operators but the family has one operator; or
            the family has several and the policy is the oracle.
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
    """Return only the settings of the policy that the text stands for.

    Raises:
        UserError: an unknown policy, setting or part.
    """
    return contender_settings(text).policy


def contender_settings(text: str) -> Settings:
    """Return all settings that the text stands for, including the choice among simulated operators.

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
    """Return the operators that the text names one by one."""
    named = [change.partition("=")[2].strip() for change in changes if _key(change) == "operator"]
    for operator in named:
        if operator not in NEEDS:
            raise UserError(
                f"unknown operator '{operator}' in simulated worlds; there are: {', '.join(NEEDS)}"
            )
    return named


def _placed(change: str) -> str:
    """Return the change with its key spelled the way it is in settings files."""
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
