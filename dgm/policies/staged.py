"""Evaluation in stages: a few tasks for every agent, many more for those that did well on the few.

Source: arXiv:2505.22954, section 4.2, and its published program (jennyzzt/dgm, ``self_improve_step.py``): 10 tasks,
then 50 more where at least 0.4 of the 10 were resolved. A suite with fewer tasks has shorter stages. The paper's third
stage (140 more for the two best) is left out; the program computes its threshold and does not use it. Tasks that were
given up count nowhere here, and as unresolved in the program. The program gets the seed with all its results; here the
seed is evaluated, and paid for, like its descendants.
"""

from functools import lru_cache
from hashlib import sha256
from itertools import chain, islice
from random import Random

import numpy as np
from numpy.typing import NDArray

from dgm.archive.tree import Tree
from dgm.domain import AgentId, Evaluate, TaskId, Verdict
from dgm.policies.limits import BARREN, births_under_way, evaluations_begun, may_expand
from dgm.policies.outcomes import graded, scores
from dgm.policies.rules import PolicyContext
from dgm.policies.tasks import best_untried

FIRST_STAGE = 10
SECOND_STAGE = 50
THRESHOLD = 0.4
"""Share of the first stage that must be resolved for the second."""


def owed(tree: Tree) -> NDArray[np.int64]:
    """Return the ids of the agents whose stage has a task that was not started yet; ascending.

    The second stage is owed once every task of the first is graded or given up, if enough of the first were resolved.
    From then on it is owed to its end, whatever its results.
    """
    tried = np.array(tree.tried_count, dtype=np.int64)
    first = min(FIRST_STAGE, len(tree.tasks))
    both = min(FIRST_STAGE + SECOND_STAGE, len(tree.tasks))
    finished = (tried == first) & (evaluations_in_flight(tree) == 0) & (graded(tree) > 0)
    promoted = finished & (scores(tree) >= THRESHOLD)
    begun = np.flatnonzero((tried > first) & (tried < both))
    promoted[begun] = _passed(tree, [AgentId(int(agent)) for agent in begun])
    return np.flatnonzero((tried < first) | promoted & (tried < both))


def _passed(tree: Tree, agents: list[AgentId]) -> list[bool]:
    """Return for each agent whether it resolved enough of its first stage, whatever it tried since.

    An agent has not passed before every task of that stage is graded or given up.
    """
    actions = chain(tree.pending.values(), tree.to_redo().values())
    waiting = {(action.agent, action.task) for action in actions if isinstance(action, Evaluate)}
    passed = []
    for agent in agents:
        stage = list(islice(tree.verdicts(agent).items(), FIRST_STAGE))
        known = [verdict for _, verdict in stage if verdict is not None]
        over = len(known) > 0 and not any((agent, task) in waiting for task, _ in stage)
        passed.append(over and known.count(Verdict.RESOLVED) >= THRESHOLD * len(known))
    return passed


def evaluations_in_flight(tree: Tree) -> NDArray[np.int64]:
    """Return per agent the number of evaluations that run or wait to be performed again."""
    flying = np.array(tree.pending_evaluations, dtype=np.int64)
    for action in tree.to_redo().values():
        if isinstance(action, Evaluate):
            flying[action.agent] += 1
    return flying


@lru_cache(maxsize=16)
def fixed_order(tasks: tuple[TaskId, ...]) -> tuple[TaskId, ...]:
    """Return the tasks in an order that is the same in every run and independent of the suite's order."""
    return tuple(sorted(tasks, key=lambda task: sha256(task.encode()).digest()))


def may_still_grow(tree: Tree) -> bool:
    """Return whether the archive may grow and its failed births do not exceed its evaluations plus ``BARREN``.

    A failed birth is no evaluation. The published program ends after a number of generations and needs no such bound.
    Here a search whose births nearly all fail would spend on little else.
    """
    return may_expand(tree) and sum(tree.stillborn.values()) <= BARREN + evaluations_begun(tree)


def leftover(tree: Tree) -> AgentId | None:
    """Return the agent that may try a task that no stage asks for; ``None`` where there is none.

    Once the archive cannot grow it is the agent with the best score and an untried task. It is nobody while a child is
    on its way to the last place.
    """
    last_birth = births_under_way(tree) > 0 and not may_expand(tree)
    return None if may_still_grow(tree) or last_birth else best_untried(tree)


class StagesDone:
    """The gate: expand when nobody is owed an evaluation; those under way are not waited for."""

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def expands(self, tree: Tree, rng: Random) -> bool:  # noqa: ARG002  (nothing is left to chance)
        """Return whether every stage that was earned is under way or over, and the archive may still grow."""
        return not len(owed(tree)) and may_still_grow(tree)


class ByStage:
    """The evaluation rule: the oldest agent that is owed an evaluation.

    Where nobody is owed one and the archive cannot grow, it names ``leftover`` (the program ends there).
    """

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def target(self, tree: Tree, rng: Random) -> AgentId | None:  # noqa: ARG002  (nothing is left to chance)
        """Return an agent with an untried task, or nobody."""
        waiting = owed(tree)
        return AgentId(int(waiting[0])) if len(waiting) else leftover(tree)


class FixedOrder:
    """The task rule: every agent gets the same tasks in the same order, so that a stage is the same for all.

    The program has two fixed lists, drawn to be representative; ``fixed_order`` stands for them.
    """

    def __init__(self, kit: PolicyContext) -> None:
        """Ignore the kit; this part needs nothing from it."""

    def task(self, tree: Tree, agent: AgentId, rng: Random) -> TaskId:  # noqa: ARG002  (nothing is left to chance)
        """Return the first untried task of ``agent`` in ``fixed_order``."""
        tried = tree.tried(agent)
        return next(task for task in fixed_order(tree.tasks) if task not in tried)
