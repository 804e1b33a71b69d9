"""A curriculum: which search tasks agents are evaluated on now.

A task that every recent agent resolves, or none does, says little about which agent is better. The curriculum takes it
out of the active tasks and draws another one from the pool (Task-CoEvolve, arXiv:2608.20169; OMNI-EPIC,
arXiv:2405.15568, where tasks are written anew instead of drawn). The holdout and the promotion tasks never change.
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from dgm.archive.events import TasksChanged
from dgm.archive.tree import Tree
from dgm.config import CurriculumSettings, Settings
from dgm.domain import AgentId, Budget, Tally, TaskId, Verdict
from dgm.errors import UserError
from dgm.policies.limits import may_expand


def refuse_misfit(settings: Settings, budget: Budget, tasks: int) -> None:
    """Refuse a curriculum that the suite is too small for, or whose changes of tasks would bias another setting.

    Raises:
        UserError: says which.
    """
    start = settings.curriculum.start
    if start is None:
        if settings.curriculum != CurriculumSettings():
            raise UserError("does nothing without curriculum.start", argument="curriculum.agents")
        return
    fault = ""
    if start >= tasks:
        fault = f"expected less than the {tasks} search tasks, so that a pool is left"
    elif budget.score is not None or budget.patience is not None:
        fault = "rates do not compare when tasks change; leave out until_score and patience"
    elif settings.policy.reward != "resolved":
        fault = "policy.reward sums rewards of different tasks; leave it out"
    elif settings.policy.recommendation == "best-belief":
        fault = "policy.recommendation = 'best-belief' compares rates on different tasks; leave it out"
    if fault:
        raise UserError(f"{start}: {fault}", argument="curriculum.start")


def choose_tasks(tree: Tree, rule: CurriculumSettings, seed: int) -> TasksChanged | None:
    """Return the change of the active tasks that is due; None if none is, or without a curriculum.

    It follows from the tree and the seed alone, so that a resumed run changes its tasks alike.

    The informativeness of a task is the expected variance p(1 - p) of one verdict on it, where the rate p has the
    posterior Beta(1 + s, 1 + k - s): s of the k youngest agents with a verdict resolved it, k ≤ m = ``rule.agents``.

        I = E[p(1 - p)] = (1 + s)(1 + k - s) / ((2 + k)(3 + k))

    With m verdicts I is smallest, (m + 1) / ((m + 2)(m + 3)), where all m agree. Then the task leaves the active ones:

    - All m resolved it: it is retired for good.
    - None did: it is put back to the end of the pool, because later agents may grow into it. Only agents born since
      then count when it is drawn again.

    A task leaves only if another takes its place, so ``rule.start`` tasks stay active. Tasks that were never active are
    drawn first, in an order given by the seed. Where every agent has tried every active task and none may have a child,
    ``rule.start`` more are drawn.
    """
    if rule.start is None:
        return None
    state = tree.curriculum
    if not state.changes:
        return TasksChanged(tuple(_shuffle(tree.tasks, seed)[: rule.start]))
    fresh = [task for task in state.pool if task not in state.judges]
    pool = [*_shuffle(fresh, seed), *(task for task in state.pool if task in state.judges)]
    if pool and not tree.untried_count.any() and not may_expand(tree):
        return TasksChanged(tuple(pool[: rule.start]))
    agreed: list[tuple[TaskId, Verdict]] = []
    for task in state.active:
        verdicts = _recent_verdicts(tree, task, rule.agents)
        if len(verdicts) == rule.agents and len({*verdicts}) == 1:
            agreed.append((task, verdicts[0]))
    agreed = agreed[: len(pool)]
    if not agreed:
        return None
    return TasksChanged(
        drawn=tuple(pool[: len(agreed)]),
        solved=tuple(task for task, verdict in agreed if verdict is Verdict.RESOLVED),
        unsolved=tuple(task for task, verdict in agreed if verdict is Verdict.UNRESOLVED),
    )


def comparable_tallies(tree: Tree) -> Sequence[Tally]:
    """Return each agent's own tally by ``Tree.comparable``, rounded to whole verdicts."""
    resolved = np.rint(tree.comparable[0]).astype(np.int64).tolist()
    graded = (tree.own_resolved + tree.own_unresolved).tolist()
    return [Tally(solved, n - solved) for solved, n in zip(resolved, graded, strict=True)]


def _recent_verdicts(tree: Tree, task: TaskId, most: int) -> Sequence[Verdict]:
    """Return the verdicts of the youngest agents that have one on the task, at most so many."""
    verdicts: list[Verdict] = []
    first = tree.curriculum.judges.get(task, 0)
    for agent in range(len(tree.agents) - 1, first - 1, -1):
        verdict = tree.verdict(AgentId(agent), task)
        if verdict is not None:
            verdicts.append(verdict)
            if len(verdicts) == most:
                break
    return verdicts


def _shuffle(tasks: Sequence[TaskId], seed: int) -> list[TaskId]:
    """Return the tasks in an order that depends on the seed alone, under any version of Python."""
    return sorted(tasks, key=lambda task: sha256(f"{seed}/{task}".encode()).digest())
