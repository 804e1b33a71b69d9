"""Policies and their parts by name, and how a policy is put together from settings."""

from collections.abc import Mapping
from typing import Any, cast

from dgm.archive.tree import Tree
from dgm.config import PolicySettings, Settings
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.plugins import find
from dgm.policies.composed import Composed, Composition
from dgm.policies.operators import operator_rule, whole
from dgm.policies.rules import EvaluationRule, Gate, Kit, OneOperator, ParentRule, Recommendation, TaskRule
from dgm.policies.seed_share import FirstChildInTime
from dgm.protocols import Needs, Policy

POLICIES = {
    "lineage": "dgm.policies.lineage:LINEAGE",
    "hgm": "dgm.policies.hgm:HGM",
    "random": "dgm.policies.random:RANDOM",
    "dgm": "dgm.policies.dgm:DGM",
    "no-archive": "dgm.policies.dgm:NO_ARCHIVE",
    "no-self-improvement": "dgm.policies.dgm:NO_SELF_IMPROVEMENT",
    "hgm-published": "dgm.policies.hgm_published:HGM_PUBLISHED",
    "best-of-n": "dgm.policies.best_of_n:BEST_OF_N",
    "greedy": "dgm.policies.greedy:GREEDY",
    "sica": "dgm.policies.sica:SICA",
    "uct": "dgm.policies.uct:UCT",
    "hyperagents": "dgm.policies.hyperagents:HYPERAGENTS",
    "novelty": "dgm.policies.novelty:NOVELTY",
    "pareto": "dgm.policies.pareto:PARETO",
    "weighted": "dgm.policies.weighted:WEIGHTED",
    "adas": "dgm.policies.adas:ADAS",
}
GATES = {
    "lineage": "dgm.policies.lineage:LineageGate",
    "hgm": "dgm.policies.gates:Widening",
    "staged": "dgm.policies.staged:StagesDone",
    "evaluate-first": "dgm.policies.thorough:EvaluateFirst",
}
PARENT_RULES = {
    "lineage": "dgm.policies.lineage:LineageParent",
    "hgm": "dgm.policies.hgm:CladeThompson",
    "random": "dgm.policies.random:AnyParent",
    "dgm": "dgm.policies.dgm:ScoreOverChildren",
    "no-archive": "dgm.policies.dgm:Latest",
    "no-self-improvement": "dgm.policies.dgm:SeedImproves",
    "hgm-published": "dgm.policies.hgm_published:CladeOfLists",
    "best-of-n": "dgm.policies.best_of_n:AlwaysSeed",
    "greedy": "dgm.policies.greedy:BestMean",
    "sica": "dgm.policies.sica:NewestGoodEnough",
    "uct": "dgm.policies.uct:TreeWalk",
    "hyperagents": "dgm.policies.hyperagents:TopRelative",
    "novelty": "dgm.policies.novelty:PerformanceNovelty",
    "pareto": "dgm.policies.pareto:FrontFrequency",
    "weighted": "dgm.policies.weighted:MedianRelative",
    "adas": "dgm.policies.adas:Newest",
}
EVALUATION_RULES = {
    "lineage": "dgm.policies.lineage:LineageEvaluation",
    "hgm": "dgm.policies.hgm:OwnThompson",
    "random": "dgm.policies.random:AnyTarget",
    "staged": "dgm.policies.staged:ByStage",
    "hgm-published": "dgm.policies.hgm_published:OwnList",
    "every-task": "dgm.policies.thorough:EveryTask",
    "pareto": "dgm.policies.pareto:BatchFirst",
}
TASK_RULES = {
    "informative": "dgm.policies.lineage:InformativeTask",
    "random": "dgm.policies.tasks:RandomTask",
    "fixed-order": "dgm.policies.staged:FixedOrder",
    "pareto": "dgm.policies.pareto:BatchTask",
}
RECOMMENDATIONS = {
    "lineage": "dgm.policies.lineage:LineageRecommendation",
    "best-belief": "dgm.policies.best_belief:BestBelief",
}
READS_ALPHA = "hgm"
"""The one built-in part that reads ``policy.alpha``; a gate."""
NEEDLESS: Mapping[str, Needs] = {}


def open_policy(settings: Settings, needs: Mapping[str, Needs] = NEEDLESS) -> Policy:
    """The policy that the settings name, with the parts that they put in place of its own.

    Put together from parts, it lets the seed take no more of the budget than ``seed_share`` allows.

    A plug-in is a ``Composition``, or a callable that makes a ``Policy`` from a ``Kit``.

    Args:
        settings: of the run.
        needs: what the run's operators need, by name; those that are not named need nothing.

    Raises:
        UserError: there is no policy or part of that name, a whole policy was to be given another part, or the
            operators cannot make the first child.
    """
    kit = Kit("+".join(settings.operator_names), settings.policy.alpha)
    found = find("policies", settings.policy.name, POLICIES)
    if not isinstance(found, Composition):
        _refuse_parts(settings.policy)
        return whole(_whole_policy(settings.policy.name, found, kit), kit.operator, settings, needs)
    kit.operators = operator_rule(settings, needs, kit)
    names = _composition(settings.policy, found)
    gate: Gate = _part("gate", "gates", names.gate, GATES)(kit)
    parent: ParentRule = _part("parent", "parent_rules", names.parent, PARENT_RULES)(kit)
    evaluation: EvaluationRule = _part("evaluation", "evaluation_rules", names.evaluation, EVALUATION_RULES)(
        kit
    )
    task: TaskRule = _part("task", "task_rules", names.task, TASK_RULES)(kit)
    _part("recommendation", "recommendations", names.recommendation, RECOMMENDATIONS)
    composed = Composed(settings.policy.name, kit, gate, parent, evaluation, task)
    return FirstChildInTime(composed, kit.operators or OneOperator(kit.operator))


def _whole_policy(name: str, found: Any, kit: Kit) -> Policy:  # noqa: ANN401  (whatever the plug-in names)
    policy = found(kit) if callable(found) else found
    missing = [part for part in ("name", "keeps_state", "next", "observe") if not hasattr(policy, part)]
    if missing:
        raise UserError(
            f"policy.name: the plug-in '{name}' is neither a Composition nor makes a Policy: "
            f"{type(policy).__name__} has no {', '.join(missing)}"
        )
    return cast("Policy", policy)


def refuse_idle(policy: PolicySettings) -> None:
    """Makes sure that ``policy.alpha`` is not set where nothing reads it.

    Asked where something new is begun, and not by ``open_policy``: a run that has such a setting is gone on with,
    replayed and read. Plug-ins are made from the kit and may read it.

    Args:
        policy: can be opened.

    Raises:
        UserError: alpha differs from its default, and all parts are built-in ones that do not read it.
    """
    if policy.alpha == PolicySettings().alpha or policy.name not in POLICIES:
        return
    names = _composition(policy, find("policies", policy.name, POLICIES))
    parts = (
        (names.gate, GATES),
        (names.parent, PARENT_RULES),
        (names.evaluation, EVALUATION_RULES),
        (names.task, TASK_RULES),
        (names.recommendation, RECOMMENDATIONS),
    )
    if names.gate != READS_ALPHA and all(name in builtin for name, builtin in parts):
        raise UserError(
            f"policy.alpha = {policy.alpha:g}: does nothing with the gate '{names.gate}', only with '{READS_ALPHA}'; "
            f"leave it out or set policy.gate to '{READS_ALPHA}'"
        )


def best_agent(policy: PolicySettings, tree: Tree) -> AgentId:
    """The agent that the policy's recommendation hands out; there must be one.

    Raises:
        UserError: the policy, or its recommendation, is a plug-in that is not installed.
    """
    found = find("policies", policy.name, POLICIES)
    own = found if isinstance(found, Composition) else Composition("", "", "")
    name = policy.recommendation or own.recommendation
    rule: Recommendation = _part("recommendation", "recommendations", name, RECOMMENDATIONS)(
        Kit(alpha=policy.alpha)
    )
    return rule.recommend(tree)


def _part(setting: str, group: str, name: str, builtin: Mapping[str, str]) -> Any:  # noqa: ANN401  (whatever it names)
    try:
        return find(group, name, builtin)
    except UserError as error:
        raise UserError(f"policy.{setting}: {error}") from error


def _composition(policy: PolicySettings, own: Composition) -> Composition:
    return Composition(
        policy.gate or own.gate,
        policy.parent or own.parent,
        policy.evaluation or own.evaluation,
        policy.task or own.task,
        policy.recommendation or own.recommendation,
    )


def _refuse_parts(policy: PolicySettings) -> None:
    given = [name for name in ("gate", "parent", "evaluation", "task") if getattr(policy, name)]
    if given:
        raise UserError(
            f"policy.{given[0]}: the policy '{policy.name}' is whole and has no parts to exchange"
        )
