"""Policies as a study names them, and the oracle, a policy that knows the truth.

``lineage+gate=hgm`` is ``lineage`` with the gate of ``hgm``; every setting of ``[policy]`` can stand after a ``+``, and
those of the curriculum: ``hgm+curriculum.start=20``. In the family ``operators`` the text also says which operators
make children:

- ``hgm+operators.choice=bandit`` chooses among all operators by the worth of their children.
- ``hgm+operators.weights.invent=3`` takes one operator more often than the others.
- ``hgm+operator=invent+operator=module`` takes only those operators.
"""

from collections.abc import Callable, Sequence
from random import Random

from dgm.archive.tree import Tree
from dgm.config import CurriculumSettings, Settings, resolve
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.policies.hgm import chance
from dgm.policies.limits import evaluations_left
from dgm.policies.operators import open_operators
from dgm.policies.policy import Plan, PlannedPolicy, View
from dgm.policies.registry import best_agent, open_policy, refuse_idle
from dgm.protocols import Policy
from dgm.simulation.families import OPERATORS
from dgm.simulation.virtual import Latents
from dgm.simulation.world import EFFORT, HORIZON, NEEDS, World

ORACLE = "oracle"
"""Stands for the policy that knows the truth, which no settings can name."""
STAGES = (1, 2, 4, 8, 16)
"""How far potentials look ahead near the end; before that, ``EFFORT`` expansions."""
SHORTLIST = 8
"""Agents of the highest prospect whose potentials are compared; a potential takes milliseconds."""


def open_contender(text: str, world: World) -> tuple[Policy, Callable[[Tree], AgentId]]:
    """Return a fresh policy for one trial in the world, and its recommendation.

    Raises:
        UserError: the cases of ``check_policy``.
    """
    check_policy(text, world.family)
    if text == ORACLE:
        oracle = PlannedPolicy(ORACLE, Oracle(world).decide, *open_operators(Settings(), {}))
        return oracle, lambda tree: truly_best(world, tree)
    settings = contender_settings(text)
    if world.family != OPERATORS:
        settings = Settings(policy=settings.policy)
    return open_policy(settings, NEEDS), lambda tree: best_agent(settings.policy, tree)


def curriculum_of(text: str) -> CurriculumSettings:
    """Return the curriculum that the text asks for; by default there is none."""
    return CurriculumSettings() if text == ORACLE else contender_settings(text).curriculum


def check_policy(text: str, family: str) -> None:
    """Refuse an unknown policy, settings that have no effect on it, and a policy that does not fit the family.

    Raises:
        UserError: says which.
    """
    if text == ORACLE:
        if family == OPERATORS:
            raise UserError(
                f"policy '{ORACLE}' knows nothing of operators; compare others in the family '{family}'"
            )
        return
    settings = contender_settings(text)
    try:
        refuse_idle(settings.policy)
    except UserError as error:
        raise UserError(f"policy '{text}': {error}") from error
    for change in text.split("+")[1:]:
        if family != OPERATORS and _is_about_operators(change):
            raise UserError(
                f"policy '{text}': '{change}' has no effect in the family '{family}', whose worlds have one operator; "
                f"use the family '{OPERATORS}'"
            )


def contender_settings(text: str) -> Settings:
    """Return all settings that the text stands for, including the choice among simulated operators.

    Raises:
        UserError: an unknown policy, setting, part or operator.
    """
    name, *changes = text.split("+")
    if not name or not all("=" in change for change in changes):
        raise UserError(f"policy '{text}': expected NAME or NAME+KEY=VALUE, for example hgm+alpha=0.5")
    if any(_key(change).strip("\"'") == "name" for change in changes):
        raise UserError(f"policy '{text}': the name stands before the first '+', and cannot be set again")
    try:
        operators = [change.partition("=")[2].strip() for change in changes if _key(change) == "operator"]
        _check_operators(operators)
        settings = resolve(
            None,
            [_qualified(change) for change in changes if _key(change) != "operator"],
            {"policy.name": name, "operator": "+".join(operators or NEEDS)},
        )
        open_policy(settings, NEEDS)
    except UserError as error:
        raise UserError(f"policy '{text}': {error}") from error
    return settings


def _check_operators(names: Sequence[str]) -> None:
    for name in names:
        if name not in NEEDS:
            raise UserError(f"unknown simulated operator '{name}'; there are: {', '.join(NEEDS)}")


def _qualified(change: str) -> str:
    """Return the change with its key spelled the way it is in settings files."""
    if _key(change).startswith("curriculum."):
        return change
    if not _is_about_operators(change):
        return f"policy.{change}"
    if not _key(change).startswith(("operators.choice", "operators.weights.")):
        raise UserError(
            f"'{_key(change)}' has no effect in simulated worlds; use operators.choice or operators.weights"
        )
    return change


def _is_about_operators(change: str) -> bool:
    return _key(change) == "operator" or _key(change).startswith("operators.")


def _key(change: str) -> str:
    return change.partition("=")[0].strip()


class Oracle:
    """The policy that knows the truth: children of the agent of the highest true clade metaproductivity.

    Each child is evaluated once, the greatest width at which that is so. Metaproductivity is the quantity that ``hgm``
    and ``lineage`` estimate. Potentials look as far ahead as there are expansions left, in a few stages. So a search
    does not end with gains that only later descendants would show.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._latents: tuple[Tree, Latents] | None = None
        self._prospects: list[tuple[int, int, float]] = []
        """Per agent: its expansions and the effort when its prospect was computed last, and that prospect."""

    def decide(self, view: View, rng: Random) -> Plan:
        """Return the plan; evaluations are drawn."""
        return Plan(
            expand=view.tree.expansions_begun < view.evaluations,
            parent=lambda: self._choose_parent(view.tree),
            agent=chance(view, rng).agent,
        )

    def _choose_parent(self, tree: Tree) -> AgentId:
        """Return the agent of the highest potential on the shortlist of prospects, the oldest of equals."""
        if self._latents is None or self._latents[0] is not tree:
            self._latents = tree, Latents(self._world, tree)
            self._prospects = []
        latents, effort = self._latents[1], _effort(tree)
        self._update(tree, latents, effort)
        hopeful = sorted(range(len(tree.agents)), key=lambda agent: (-self._prospects[agent][2], agent))

        def rank(agent: int) -> tuple[float, int]:
            births = tree.expansions[agent]
            return self._world.potential(latents.of(tree.agents[agent]), births, effort), -agent

        return AgentId(max(hopeful[:SHORTLIST], key=rank))

    def _update(self, tree: Tree, latents: Latents, effort: int) -> None:
        for agent in tree.agents:
            births = tree.expansions[agent.id]
            if agent.id == len(self._prospects):
                self._prospects.append((-1, 0, 0.0))
            if self._prospects[agent.id][:2] != (births, effort):
                value = self._world.prospect(latents.of(agent), births, min(effort, HORIZON))
                self._prospects[agent.id] = births, effort, value


def _effort(tree: Tree) -> int:
    """Return the smallest stage that reaches the end of the budget; ``EFFORT`` where no stage does."""
    left = evaluations_left(tree)
    if left is None:
        return EFFORT
    expansions = left / (tree.budget.expansion_cost + 1.0)
    return next((stage for stage in STAGES if stage >= expansions), EFFORT)


def truly_best(world: World, tree: Tree) -> AgentId:
    """Return the oracle's recommendation: the agent of the highest true score, the oldest of equals."""
    latents = Latents(world, tree)
    return max(tree.agents, key=lambda agent: (world.true_score(latents.of(agent)), -agent.id)).id
