"""The search tasks that each agent on the best one's line resolved: gains, kept tasks and losses along the line."""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm.archive.tree import Tree
from dgm.domain import AgentId, TaskId, Verdict


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """One task."""

    task: TaskId
    verdicts: Sequence[Verdict | None]
    """Verdicts of first attempts, by column; None: no verdict."""
    resolved: int
    """Number of agents of the whole archive that resolved it at the first attempt."""
    tried: int
    """Number of agents with a verdict on it."""


@dataclass(frozen=True, slots=True)
class TaskMatrix:
    """Tasks × agents."""

    agents: Sequence[AgentId]
    rows: Sequence[MatrixRow]
    """Rows sorted by the first column that resolves the task; then tried tasks, then tasks that nobody tried."""
    agents_left_out: int
    tasks_left_out: int


def build_matrix(tree: Tree, line: Sequence[AgentId], tasks: int = 200, agents: int = 24) -> TaskMatrix:
    """Return the matrix of ``line``, of at most ``tasks`` tasks and ``agents`` agents.

    A longer line is cut to its seed and its end.
    """
    columns = list(line) if len(line) <= agents else [line[0], *line[len(line) - agents + 1 :]]
    solved: dict[TaskId, int] = {}
    tried: dict[TaskId, int] = {}
    for agent in tree.agents:
        for task, verdict in tree.verdicts(agent.id).items():
            if verdict is not None and verdict is not Verdict.INVALID:
                tried[task] = tried.get(task, 0) + 1
                solved[task] = solved.get(task, 0) + (verdict is Verdict.RESOLVED)
    rows = [
        MatrixRow(
            task,
            [_drop_invalid(tree.verdict(agent, task)) for agent in columns],
            solved.get(task, 0),
            tried.get(task, 0),
        )
        for task in tree.tasks
    ]
    rows.sort(key=lambda row: _sort_key(row, len(columns)))
    return TaskMatrix(columns, rows[:tasks], len(line) - len(columns), max(0, len(rows) - tasks))


def _drop_invalid(verdict: Verdict | None) -> Verdict | None:
    return None if verdict is Verdict.INVALID else verdict


def _sort_key(row: MatrixRow, columns: int) -> tuple[int, int]:
    first = next((n for n, verdict in enumerate(row.verdicts) if verdict is Verdict.RESOLVED), None)
    if first is not None:
        return first, -row.resolved
    return columns + all(verdict is None for verdict in row.verdicts), -row.resolved
