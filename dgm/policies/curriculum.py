"""A curriculum: which search tasks agents are evaluated on now, and counts that compare agents across such changes.

A task that every recent agent resolves, or none does, says little about which agent is better. The curriculum takes it
out of the active tasks and draws another one from the pool (Task-CoEvolve, arXiv:2608.20169; OMNI-EPIC,
arXiv:2405.15568, where tasks are written anew instead of drawn). The holdout and the promotion tasks never change.
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from dgm.archive.events import TasksChanged
from dgm.archive.tree import Tree
from dgm.config import CurriculumSettings
from dgm.domain import AgentId, Tally, TaskId, Verdict
from dgm.policies.limits import may_expand

Floats = NDArray[np.float64]
Counts = Floats | NDArray[np.int64]
"""Whole numbers without a curriculum."""

ROUNDS = 10
"""Rounds in which effects of agents and tasks are estimated in turn."""
SHRINKAGE = 1.0
"""Verdicts of an average agent, or task, that each estimated effect is shrunk by."""


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


def comparable_counts(tree: Tree) -> tuple[Counts, Counts]:
    """Return each agent's resolved verdicts, and its clade's, corrected for which tasks they are on; shapes (agents,).

    Agents of different times face different tasks, so plain tallies flatter those that met the easier ones. A verdict
    y (0 or 1) of agent a on task t is taken as μ + α(a) + β(t) and noise. The effects are estimated in turn, shrunk by
    λ verdicts, with n verdicts each:

        α(a) = Σ_t (y - μ - β(t)) / (n(a) + λ)    β(t) = Σ_a (y - μ - α(a)) / (n(t) + λ)

    From the resolved verdicts the effects β of their tasks are taken, within 0 and the number of verdicts: these are
    least-squares means of a two-way layout (Searle, Speed and Milliken, The American Statistician 34, 1980). Agents
    that met the same tasks keep their order. Without a change of tasks, the plain counts are returned.
    """
    own, clade = tree.own_resolved, tree.clade_resolved
    if tree.curriculum.changes < 2:
        return own.copy(), clade.copy()
    shift = _task_effects(tree)
    clade_shift = tree.sum_clades(shift[None, :])[0]
    return (
        np.clip(own - shift, 0.0, own + tree.own_unresolved),
        np.clip(clade - clade_shift, 0.0, clade + tree.clade_unresolved),
    )


def comparable_tallies(tree: Tree) -> Sequence[Tally]:
    """Return each agent's own tally by ``comparable_counts``, rounded to whole verdicts."""
    resolved = np.rint(comparable_counts(tree)[0]).astype(np.int64).tolist()
    graded = (tree.own_resolved + tree.own_unresolved).tolist()
    return [Tally(solved, n - solved) for solved, n in zip(resolved, graded, strict=True)]


def _task_effects(tree: Tree) -> Floats:
    """Return for each agent the sum of the effects β of the tasks that it has a first verdict on."""
    numbers = {task: number for number, task in enumerate(tree.tasks)}
    verdicts = [
        (agent.id, numbers[task], verdict is Verdict.RESOLVED)
        for agent in tree.agents
        for task, verdict in tree.verdicts(agent.id).items()
        if verdict is not None and task in numbers
    ]
    agents, tasks, outcomes = np.array(verdicts, dtype=np.int64).reshape(-1, 3).T
    rest = outcomes - (float(outcomes.mean()) if len(outcomes) else 0.0)
    per_agent = np.bincount(agents, minlength=len(tree.agents)) + SHRINKAGE
    per_task = np.bincount(tasks, minlength=len(numbers)) + SHRINKAGE
    beta = np.zeros(len(numbers))
    for _ in range(ROUNDS):
        alpha = np.bincount(agents, rest - beta[tasks], len(tree.agents)) / per_agent
        beta = np.bincount(tasks, rest - alpha[agents], len(numbers)) / per_task
    return np.bincount(agents, beta[tasks], len(tree.agents)).astype(np.float64)


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
