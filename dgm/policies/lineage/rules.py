"""The five parts of the policy; all but the recommendation share one ``Fold`` of the events."""

import math
from random import Random

import numpy as np

from dgm.archive.events import Recorded
from dgm.archive.tree import Tree
from dgm.domain import SEED, AgentId, TaskId, Verdict
from dgm.policies.limits import share_left
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
from dgm.policies.lineage.outlook import Outlook
from dgm.policies.lineage.posterior import Posterior
from dgm.policies.lineage.ties import leader
from dgm.policies.policy import Plan, View


class Lineage:
    """The policy: a fold of the events, and the plan that it gives of a tree."""

    def __init__(self) -> None:
        self._fold = Fold()

    def observe(self, event: Recorded) -> None:
        """Fold one event into the state."""
        self._fold.observe(event)

    def decide(self, view: View, rng: Random) -> Plan:
        """Return the plan: the parent whose line promises most, and the agent whose evaluation may change the best one.

        Every new child is evaluated once, the first ones up to three times.
        """
        outlook = self._fold.outlook(view.tree)
        return Plan(
            expand=_expands(view, outlook),
            parent=lambda: outlook.parent,
            agent=lambda: outlook.target if outlook.urgent is None else outlook.urgent,
            task=lambda agent: _informative_task(view, outlook, agent, rng),
        )


def _expands(view: View, outlook: Outlook) -> bool:
    """Return whether a child promises more than an evaluation, per unit of cost.

    Nobody has a child in the last tenth of the budget, nor before an urgent evaluation.
    """
    if outlook.urgent is not None or share_left(view.tree) <= LAST_SHARE:
        return False
    per_expansion = 1.0 + EXTRA_EVALUATIONS * max(outlook.expansion_cost - 1.0, 0.0)
    if view.evaluations < per_expansion * (view.tree.expansions_begun + 1):
        return False
    return outlook.expansion_pays


def _informative_task(view: View, outlook: Outlook, agent: AgentId, rng: Random) -> TaskId:
    """Return the untried task that teaches most about the agent's skill: near its own level, of known difficulty.

    The first children that have failed get a task that their parents solve. A random factor keeps agents from all
    meeting the same tasks.
    """
    tasks = view.untried(agent)
    worth = outlook.task_worth(agent, tasks)
    jitter = np.array([rng.uniform(*TASK_JITTER) for _ in tasks])
    return tasks[int(np.argmax(worth * jitter))]


def recommend(tree: Tree) -> AgentId:
    """Return the agent of the highest lower bound, or the seed where no other agent has proved better.

    The bound is the posterior mean less one and a half standard deviations, among sound agents. An agent needs two
    results or more, one of them a success. Between two agents that seem equal the better known one is taken. Only the
    agent that is taken is compared with the seed. The seed has a small bonus if the agent is of the first generations
    and a malus if it is of later ones. Where many of the first children failed, the malus is larger and holds for any
    generation. The posterior is fitted from nothing to the verdicts that the tree holds (first attempts), so that any
    reader of a run can ask.
    """
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
