"""The search tasks of a run with a curriculum by their state, and what makes verdicts on different tasks comparable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dgm.archive.events import TasksChanged
from dgm.domain import TaskId, Verdict
from dgm.errors import ArchiveCorrupt

Counts = NDArray[np.int64] | NDArray[np.float64]
ROUNDS = 10
"""Rounds in which effects of agents and tasks are estimated in turn."""
SHRINKAGE = 1.0
"""Verdicts of an average agent, or task, that each estimated effect is shrunk by."""


@dataclass(slots=True)
class Curriculum:
    """The search tasks by their state: a fold of ``TasksChanged``."""

    active: tuple[TaskId, ...] = ()
    """Tasks that agents are evaluated on now, in the order of the suite; all search tasks without a curriculum."""
    pool: tuple[TaskId, ...] = ()
    """Tasks that may be drawn: first those never active, in the order of the suite, then those put back."""
    retired: tuple[TaskId, ...] = ()
    """Tasks that the recent agents all resolved when they were retired."""
    judges: dict[TaskId, int] = field(default_factory=dict)
    """Task that was put back → the first agent born since, whose verdicts say anew whether it is informative."""
    changes: int = 0
    """Number of events; 0: the run has no curriculum."""

    def apply(self, event: TasksChanged, tasks: Sequence[TaskId], agents: int) -> None:
        """Fold in an event of a tree with these search tasks and so many agents; raises ``ArchiveCorrupt``."""
        drawn, gone = set(event.drawn), {*event.solved, *event.unsolved}
        pool = self.pool if self.changes else tuple(tasks)
        active = self.active if self.changes else ()
        left = (drawn | {*active}) - gone
        if not left or not drawn <= {*pool} or not gone <= {*active}:
            raise ArchiveCorrupt("a change of the tasks does not fit here")
        self.active = tuple(task for task in tasks if task in left)
        self.pool = (*(task for task in pool if task not in drawn), *event.unsolved)
        self.retired += event.solved
        self.judges |= dict.fromkeys(event.unsolved, agents)
        self.changes += 1


def shift_of_tasks(verdicts: Sequence[Mapping[TaskId, Verdict | None]]) -> NDArray[np.float64]:
    """Return how many verdicts more than on average tasks each agent's tasks let it resolve; shape (agents,).

    A verdict y (0 or 1) of agent a on task t is taken as μ + α(a) + β(t) and noise. The effects are estimated in turn,
    each shrunk by λ verdicts; n counts verdicts:

        α(a) = Σ_t (y - μ - β(t)) / (n(a) + λ)    β(t) = Σ_a (y - μ - α(a)) / (n(t) + λ)

    The result is the sum of β over the agent's tasks. Resolved verdicts less this sum give least-squares means of a
    two-way layout (Searle, Speed and Milliken, The American Statistician 34, 1980), except for the shrinkage. Agents
    that met the same tasks keep their order. Agents without a common task are compared through others.

    Args:
        verdicts: per agent, the first verdict on each task.
    """
    numbers: dict[TaskId, int] = {}
    rows = [
        (agent, numbers.setdefault(task, len(numbers)), verdict is Verdict.RESOLVED)
        for agent, known in enumerate(verdicts)
        for task, verdict in known.items()
        if verdict is not None
    ]
    agents, tasks, outcomes = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    rest = outcomes - outcomes.sum() / max(len(outcomes), 1)
    per_agent = np.bincount(agents, minlength=len(verdicts)) + SHRINKAGE
    per_task = np.bincount(tasks, minlength=len(numbers)) + SHRINKAGE
    beta = np.zeros(len(numbers))
    for _ in range(ROUNDS):
        alpha = np.bincount(agents, rest - beta[tasks], len(verdicts)) / per_agent
        beta = np.bincount(tasks, rest - alpha[agents], len(numbers)) / per_task
    return np.bincount(agents, beta[tasks], len(verdicts)).astype(np.float64)
