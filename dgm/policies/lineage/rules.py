"""The five parts of the policy; all but the recommendation share one ``Fold`` of the events."""

import math
from random import Random

import numpy as np

from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId, TaskId, Verdict
from dgm.policies.limits import evaluations_begun, share_left
from dgm.policies.lineage.constants import (
    CAUTION,
    DOUBTED_ROOT_BONUS,
    EXTRA_EVALUATIONS,
    FIT_MOVE,
    FIT_ROUNDS,
    HANDED_OUT_GENERATIONS,
    HANDED_OUT_ROOT_BONUS,
    LAST_SHARE,
    LEARN_EVERY,
    LEAST_RESULTS,
    OFTEN,
    SELDOM,
    TASK_JITTER,
)
from dgm.policies.lineage.fold import Fold
from dgm.policies.lineage.posterior import Posterior
from dgm.policies.lineage.ties import leader
from dgm.policies.rules import PolicyContext
from dgm.policies.tasks import untried


class LineageGate:
    """The gate that expands where a child promises more than an evaluation, per unit of cost."""

    def __init__(self, kit: PolicyContext) -> None:
        self._fold = kit.shared(Fold)

    def expands(self, tree: Tree, rng: Random) -> bool:  # noqa: ARG002  (nothing is left to chance)
        """Return whether the archive should grow now.

        It should not in the last tenth of the budget, nor before an urgent evaluation.
        """
        outlook = self._fold.outlook(tree)
        if outlook.urgent is not None or share_left(tree) <= LAST_SHARE:
            return False
        per_expansion = 1.0 + EXTRA_EVALUATIONS * max(outlook.expansion_cost - 1.0, 0.0)
        if evaluations_begun(tree) < per_expansion * (tree.expansions_begun + 1):
            return False
        return outlook.expansion_pays


class LineageParent:
    """The parent whose line promises most within six generations."""

    def __init__(self, kit: PolicyContext) -> None:
        self._fold = kit.shared(Fold)

    def parents(self, tree: Tree, rng: Random) -> tuple[AgentId, ...]:  # noqa: ARG002
        """Return one parent; none before an agent has a result or all evaluations of the seed were given up."""
        parent = self._fold.outlook(tree).parent
        return () if parent is None else (parent,)


class LineageEvaluation:
    """The rule that evaluates every new child once, the first ones up to three times, then the agent that matters most.

    An agent matters if its evaluation may change which agent is best.
    """

    def __init__(self, kit: PolicyContext) -> None:
        self._fold = kit.shared(Fold)

    def target(self, tree: Tree, rng: Random) -> AgentId | None:  # noqa: ARG002
        """Return an agent with an untried task; ``None`` where there is none."""
        outlook = self._fold.outlook(tree)
        return outlook.target if outlook.urgent is None else outlook.urgent


class InformativeTask:
    """The untried task that teaches most about the agent's skill: near its own level, of known difficulty.

    The first children that have failed get a task that their parents solve.
    """

    def __init__(self, kit: PolicyContext) -> None:
        self._fold = kit.shared(Fold)

    def task(self, tree: Tree, agent: AgentId, rng: Random) -> TaskId:
        """Return an untried task of ``agent``; a random factor keeps agents from all meeting the same tasks."""
        tasks = untried(tree, agent)
        worth = self._fold.outlook(tree).task_worth(agent, tasks)
        jitter = np.array([rng.uniform(*TASK_JITTER) for _ in tasks])
        return tasks[int(np.argmax(worth * jitter))]


class LineageRecommendation:
    """The highest lower bound, posterior mean less one and a half standard deviations, among sound agents.

    An agent needs two results or more, one of them a success, to be handed out. Between two agents that seem equal the
    better known one is taken. Only the agent that is taken is compared with the seed. The seed has a small bonus if the
    agent is of the first generations and a malus if it is of later ones. Where many of the first children failed, the
    malus is larger and holds for any generation. The posterior is fitted from nothing to the verdicts that the tree
    holds (first attempts), so that any reader of a run can ask.
    """

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def recommend(self, tree: Tree) -> AgentId:
        """Return the best agent, or the seed where no other agent has proved better."""
        posterior = fitted(tree)
        broken = posterior.broken()
        bounds = [state.t - CAUTION * math.sqrt(state.tt) for state in posterior.beliefs.states]
        evidence = posterior.evidence
        candidates = [
            AgentId(agent)
            for agent, count in enumerate(evidence.counts)
            if agent and count >= LEAST_RESULTS and evidence.solved[agent] and broken[agent] < 0.5
        ]
        best = candidates[leader(np.array(bounds)[candidates])] if candidates else SEED
        bonus = np.interp(posterior.generation(best), HANDED_OUT_GENERATIONS, HANDED_OUT_ROOT_BONUS)
        bonus = np.interp(posterior.failed_children(), (SELDOM, OFTEN), (bonus, DOUBTED_ROOT_BONUS))
        return best if bounds[best] > bounds[SEED] + bonus else SEED


def fitted(tree: Tree, rest: float = FIT_MOVE) -> Posterior:
    """Return the posterior of the first attempts that the tree holds, whatever their order.

    It is swept until no skill moves by ``rest`` from one learning to the next, at most ``FIT_ROUNDS`` times.
    """
    posterior = Posterior()
    numbers = {task: number for number, task in enumerate(tree.tasks)}
    for agent in tree.agents:
        posterior.born(agent.parents[0] if agent.parents else 0)
        for task, verdict in tree.verdicts(agent.id).items():
            if verdict is not None and task in numbers:
                posterior.record(agent.id, numbers[task], verdict is Verdict.RESOLVED)
    skills: list[float] = []
    for turn in range(FIT_ROUNDS if len(posterior.evidence) else 0):
        learns = turn % LEARN_EVERY == LEARN_EVERY - 1
        posterior.sweep(learn=learns)
        if learns:
            before, skills = skills, [state.t for state in posterior.beliefs.states]
            if before and max(abs(new - old) for new, old in zip(skills, before, strict=True)) < rest:
                break
    return posterior
