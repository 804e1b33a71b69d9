"""Policies and their parts by name, and how a policy is put together from settings."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from dgm.archive.tree import Tree
from dgm.config import PolicySettings, Settings
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.plugins import check_shape, find_plugin, is_lent, is_reference, make_plugin
from dgm.policies.composed import Composed, Composition
from dgm.policies.rules import (
    EvaluationRule,
    Gate,
    OneOperator,
    ParentRule,
    PolicyContext,
    Recommendation,
    TaskRule,
)

if TYPE_CHECKING:
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
POLICY: Mapping[str, int | None] = {"name": None, "keeps_state": None, "next": 2, "observe": 1}
"""What a whole policy has, with how many arguments it is called."""
Shape = Mapping[str, int | None]
PARTS: Mapping[str, tuple[str, Mapping[str, str], Shape]] = {
    "gate": ("gates", GATES, {"expands": 2}),
    "parent": ("parent_rules", PARENT_RULES, {"parents": 2}),
    "evaluation": ("evaluation_rules", EVALUATION_RULES, {"target": 2}),
    "task": ("task_rules", TASK_RULES, {"task": 3}),
    "recommendation": ("recommendations", RECOMMENDATIONS, {"recommend": 1}),
}
"""Setting → the kind of part in the plural, the built-in ones, and what each has, with how many arguments."""
NEEDLESS: Mapping[str, "Needs"] = {}


def open_policy(settings: Settings, needs: "Mapping[str, Needs]" = NEEDLESS) -> "Policy":
    """Return the policy that the settings name, with the parts that they put in place of its own.

    A policy of parts lets the seed take no more of the budget than ``seed_share`` allows.

    A plug-in is a ``Composition``, or a callable that makes a ``Policy`` from a ``PolicyContext``.

    Args:
        settings: the settings of the run.
        needs: the needs of the run's operators by name; operators that are not named need nothing.

    Raises:
        UserError: there is no policy or part of that name, the settings give a whole policy another part, or the
            operators cannot make the first child.
    """
    # Imported here because a reader that asks for the best agent does not need them.
    from dgm.policies.operators import operator_rule, whole
    from dgm.policies.seed_share import FirstChildInTime

    kit = PolicyContext("+".join(settings.operator_names), settings.policy.alpha)
    found = find_plugin("policies", settings.policy.name, POLICIES)
    if not isinstance(found, Composition):
        _refuse_parts(settings.policy)
        return whole(_whole_policy(settings.policy.name, found, kit), kit.operator, settings, needs)
    kit.operators = operator_rule(settings, needs, kit)
    names = _composition(settings.policy, found)
    gate: Gate = _part("gate", names.gate, kit)
    parent: ParentRule = _part("parent", names.parent, kit)
    evaluation: EvaluationRule = _part("evaluation", names.evaluation, kit)
    task: TaskRule = _part("task", names.task, kit)
    _find_part("recommendation", names.recommendation)
    composed = Composed(settings.policy.name, kit, gate, parent, evaluation, task)
    return FirstChildInTime(composed, kit.operators or OneOperator(kit.operator))


def with_recommendation(policy: PolicySettings) -> PolicySettings:
    """Return the settings with the recommendation of a composition that is named by reference.

    A reader of the run does not import what the run names, and finds the best agent by this recommendation.

    Raises:
        UserError: there is no policy of that name.
    """
    if policy.recommendation or not is_reference(policy.name):
        return policy
    found = find_plugin("policies", policy.name, POLICIES)
    own = found if isinstance(found, Composition) else Composition("", "", "")
    return policy.model_copy(update={"recommendation": own.recommendation})


def _whole_policy(name: str, found: Any, kit: PolicyContext) -> "Policy":  # noqa: ANN401  (whatever the plug-in names)
    policy = found
    if is_reference(name):
        policy = make_plugin("policies", name, kit)
    elif callable(found):
        policy = found(kit) if name in POLICIES else make_plugin("policies", name, kit)
    check_shape("policies", name, policy, POLICY)
    return cast("Policy", policy)


def refuse_idle(policy: PolicySettings) -> None:
    """Refuse a ``policy.alpha`` that is set where nothing reads it.

    Called where a run or study begins, not by ``open_policy``: an existing run with such a setting can be continued,
    replayed and read. Plug-ins are made from the kit and may read it.

    Args:
        policy: settings that ``open_policy`` accepts.

    Raises:
        UserError: alpha differs from its default, and all parts are built-in ones that do not read it.
    """
    if policy.alpha == PolicySettings().alpha or policy.name not in POLICIES:
        return
    names = _composition(policy, find_plugin("policies", policy.name, POLICIES))
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
    """Return the agent that the policy's recommendation hands out; the tree must have an agent.

    Raises:
        UserError: the policy, or its recommendation, is a plug-in that is not installed.
    """
    # Code that only reads a run imports nothing that the run names.
    unknown = is_reference(policy.name) and not is_lent("policies", policy.name)
    found = None if unknown else find_plugin("policies", policy.name, POLICIES)
    own = found if isinstance(found, Composition) else Composition("", "", "")
    name = policy.recommendation or own.recommendation
    rule: Recommendation = _part("recommendation", name, PolicyContext(alpha=policy.alpha))
    return rule.recommend(tree)


def _part(setting: str, name: str, kit: PolicyContext) -> Any:  # noqa: ANN401  (any part)
    """Make a part from the kit; check the shape of a plug-in's part."""
    group, builtin, shape = PARTS[setting]
    found = _find_part(setting, name)
    if name in builtin:
        return found(kit)
    part = make_plugin(group, name, kit)
    check_shape(group, name, part, shape)
    return part


def _find_part(setting: str, name: str) -> Any:  # noqa: ANN401  (whatever it names)
    group, builtin, _ = PARTS[setting]
    try:
        return find_plugin(group, name, builtin)
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
