"""Policies by name, and how one is opened from settings."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

from dgm.archive.tree import Tree
from dgm.config import PolicySettings, Settings
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.plugins import check_function, check_shape, find_plugin, is_reference, make_plugin
from dgm.policies.operators import open_operators
from dgm.policies.policy import Decide, Observer, PlannedPolicy, recombine
from dgm.protocols import Needs, Policy

POLICIES = {
    "lineage": "dgm.policies.lineage:Lineage",
    "hgm": "dgm.policies.hgm:hgm",
    "random": "dgm.policies.hgm:chance",
    "dgm": "dgm.policies.dgm:dgm",
    "no-archive": "dgm.policies.dgm:no_archive",
    "no-self-improvement": "dgm.policies.dgm:no_self_improvement",
    "hgm-published": "dgm.policies.hgm:HgmPublished",
    "best-of-n": "dgm.policies.hgm:best_of_n",
    "greedy": "dgm.policies.published:greedy",
    "sica": "dgm.policies.published:sica",
    "uct": "dgm.policies.published:uct",
    "hyperagents": "dgm.policies.published:hyperagents",
    "novelty": "dgm.policies.published:novelty",
    "pareto": "dgm.policies.published:pareto",
    "weighted": "dgm.policies.published:weighted",
    "adas": "dgm.policies.published:adas",
}
RECOMMENDATIONS = {
    "lineage": "dgm.policies.lineage:recommend",
    "best-belief": "dgm.policies.hgm:best_belief",
}
PARTS = {"gate": "expand", "parent": "parent", "evaluation": "agent", "task": "task"}
"""Setting that takes a part from another policy → the field of its plan."""
PART_NAMES = {
    "staged": "dgm",
    "evaluate-first": "sica",
    "every-task": "sica",
    "fixed-order": "dgm",
    "informative": "lineage",
}
"""Names of parts that several policies share → one of these policies."""
READ_ALPHA = ("hgm", "random", "hgm-published", "best-of-n")
"""The built-in policies whose gate reads ``policy.alpha``."""
READ_REWARD = ("hgm", "lineage", "best-of-n")
"""The built-in policies that read ``policy.reward``."""
NEEDLESS: Mapping[str, Needs] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """The inputs from which a policy with state is made."""

    operator: str = "self-edit"
    """Stands for whichever operator the settings choose."""
    alpha: float = 0.6


def open_policy(settings: Settings, needs: Mapping[str, Needs] = NEEDLESS) -> Policy:
    """Return the policy that the settings name, with the parts that they take from other policies.

    Args:
        settings: the settings of the run.
        needs: the needs of the run's operators by name; operators that are not named need nothing.

    Raises:
        UserError: there is no policy of that name, it does not fit, or the operators cannot make the first child.
    """
    context = PolicyContext("+".join(settings.operator_names), settings.policy.alpha)
    operators, observers = open_operators(settings, needs)
    decide, state = _open(settings.policy.name, context)
    observers = [*observers, state] if isinstance(state, Observer) else [*observers]
    parts: dict[str, Decide] = {}
    for setting, name in _parts(settings.policy).items():
        try:
            parts[PARTS[setting]], state = _open(name, context)
        except UserError as error:
            raise UserError(f"policy.{setting}: {error}") from error
        observers += [state] if isinstance(state, Observer) else []
    _open_recommendation(settings.policy)
    return PlannedPolicy(
        settings.policy.name,
        recombine(decide, parts),
        operators,
        observers,
        alpha=context.alpha,
        operator=context.operator,
    )


def _open(name: str, context: PolicyContext) -> tuple[Decide, object]:
    """Return a policy's function, and its state if it is a class."""
    thing = find_plugin("policies", name, POLICIES)
    if inspect.isroutine(thing):
        check_function("policies", name, thing, 2)
        return thing, None
    state: Any = thing
    if isinstance(thing, type) or is_reference(name):
        state = make_plugin("policies", name, context, POLICIES)
    if hasattr(state, "next"):  # a ``Policy``, which chooses every step itself
        check_shape("policies", name, state, {"next": 2, "observe": 1})
        return lambda view, rng: state.next(view.tree, rng), state
    check_shape("policies", name, state, {"decide": 2})
    return state.decide, state


def _parts(policy: PolicySettings) -> Mapping[str, str]:
    names = {setting: getattr(policy, setting) for setting in PARTS}
    return {setting: PART_NAMES.get(name, name) for setting, name in names.items() if name}


def refuse_idle(policy: PolicySettings) -> None:
    """Refuse a ``policy.alpha`` or ``policy.reward`` that is set where nothing reads it.

    Called where a run or study begins, not by ``open_policy``: an existing run with such a setting can be continued,
    replayed and read. Plug-ins may read it.

    Raises:
        UserError: one differs from its default, and all parts are built-in ones that do not read it.
    """
    parts = _parts(policy)
    names = {policy.name, *parts.values()}
    if policy.reward != "resolved" and names <= POLICIES.keys() and names.isdisjoint(READ_REWARD):
        raise UserError(
            f"policy.reward = {policy.reward!r}: does nothing with '{policy.name}', only with {', '.join(READ_REWARD)}"
        )
    gate = parts.get("gate", policy.name)
    if policy.alpha == PolicySettings().alpha or gate in READ_ALPHA:
        return
    recommendations = {policy.recommendation} - {None, *RECOMMENDATIONS}
    if POLICIES.keys() >= {policy.name, *parts.values()} and not recommendations:
        raise UserError(
            f"policy.alpha = {policy.alpha:g}: does nothing with the gate '{policy.gate or policy.name}', only with "
            "'hgm'; leave it out or set policy.gate to 'hgm'"
        )


def best_agent(policy: PolicySettings, tree: Tree) -> AgentId:
    """Return the agent that the policy's recommendation hands out; the tree must have an agent.

    Under a curriculum it is by default ``lineage``, which learns how difficult each task is: plain rates do not
    compare.

    Raises:
        UserError: the recommendation is a plug-in that is not installed.
    """
    if policy.recommendation is None and tree.curriculum.changes:
        policy = policy.model_copy(update={"recommendation": "lineage"})
    best: AgentId = _open_recommendation(policy)(tree)
    return best


def _open_recommendation(policy: PolicySettings) -> Callable[[Tree], AgentId]:
    name = policy.recommendation or ("lineage" if policy.name == "lineage" else "best-belief")
    try:
        if name not in RECOMMENDATIONS:
            part = make_plugin("recommendations", name, PolicyContext(), RECOMMENDATIONS, {"recommend": 1})
            return cast("Callable[[Tree], AgentId]", part.recommend)
        return cast("Callable[[Tree], AgentId]", find_plugin("recommendations", name, RECOMMENDATIONS))
    except UserError as error:
        raise UserError(f"policy.recommendation: {error}") from error
