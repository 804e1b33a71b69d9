"""New splits of a suite's tasks: by time, by library, or at random."""

import random
from collections.abc import Mapping, Sequence
from enum import StrEnum

from dgm.benchmarks.task_facts import TaskFacts
from dgm.domain import Split, TaskId
from dgm.errors import UserError


class SplitBy(StrEnum):
    """A way to choose what is held out."""

    TIME = "time"
    """The newest tasks. No workspace then shows the fix of a task that is held out."""
    REPO = "repo"
    """Whole libraries (``repo``) of the suite."""
    RANDOM = "random"
    """Tasks of each kind by chance."""


def choose_splits(
    facts: Sequence[TaskFacts], holdout: float, promotion: float, by: SplitBy, seed: int
) -> Mapping[TaskId, Split]:
    """Return the new split of each task: about these shares, and at least one task to search on and one to hold out.

    Args:
        facts: of all tasks.
        holdout: share that reports are made on, above 0 and below 1.
        promotion: share that accepts or rejects agents, from 0.
        by: the way. By time the promotion tasks lie between the others.
        seed: of what is chosen by chance.

    Raises:
        UserError: the tasks cannot be split so; the message says why.
    """
    if not (0 < holdout < 1 and 0 <= promotion < 1 and holdout + promotion < 1):
        raise UserError(
            f"holdout {holdout:g} and promotion {promotion:g}: must be shares that leave some tasks for search"
        )
    match by:
        case SplitBy.TIME:
            groups = _by_time(facts)
        case SplitBy.REPO:
            groups = _by_repo(facts, seed)
        case SplitBy.RANDOM:
            groups = _by_chance(facts, seed)
    return _cut(groups, holdout, promotion)


def _by_time(facts: Sequence[TaskFacts]) -> list[list[TaskId]]:
    """Return the tasks of each day, the oldest first."""
    undated = [each.id for each in facts if not each.day]
    if undated:
        raise UserError(
            f"task {undated[0]!r} has no date ([provenance] in task.toml); split by random or repo"
        )
    days: dict[str, list[TaskId]] = {}
    for each in sorted(facts, key=lambda each: (each.day, each.id)):
        days.setdefault(each.day, []).append(each.id)
    if len(days) < 2:
        raise UserError("all tasks are of one day, so that time does not part them; split by random or repo")
    return list(days.values())


def _by_repo(facts: Sequence[TaskFacts], seed: int) -> list[list[TaskId]]:
    """Return the tasks of each library, the libraries shuffled."""
    repos: dict[str, list[TaskId]] = {}
    for each in facts:
        if not each.repo:
            raise UserError(
                f"task {each.id!r} belongs to no library (repo in task.toml); split by random or time"
            )
        repos.setdefault(each.repo, []).append(each.id)
    if len(repos) < 2:
        raise UserError(
            "all tasks belong to one library, so that libraries do not part them; split by random or time"
        )
    names = sorted(repos)
    random.Random(f"repo/{seed}").shuffle(names)
    return [sorted(repos[name]) for name in names]


def _by_chance(facts: Sequence[TaskFacts], seed: int) -> list[list[TaskId]]:
    """Return single tasks in an order in which every beginning has about the whole's share of each kind."""
    kinds: dict[str, list[TaskId]] = {}
    for each in sorted(facts, key=lambda each: each.id):
        kinds.setdefault(each.kind, []).append(each.id)
    ranked: list[tuple[float, str, TaskId]] = []
    for kind, tasks in kinds.items():
        random.Random(f"random/{seed}/{kind}").shuffle(tasks)
        ranked += (((number + 0.5) / len(tasks), kind, task) for number, task in enumerate(tasks))
    if len(ranked) < 2:
        raise UserError("one task cannot be split")
    return [[task] for _, _, task in sorted(ranked)]


def _cut(groups: Sequence[Sequence[TaskId]], holdout: float, promotion: float) -> Mapping[TaskId, Split]:
    """Return the splits of groups that stay together: search, then promotion, then holdout, from the beginning."""
    sizes = [0]
    for group in groups:
        sizes.append(sizes[-1] + len(group))
    total, last = sizes[-1], len(groups)
    first_held = min(range(1, last), key=lambda cut: abs(total - sizes[cut] - holdout * total))
    low = 1 if promotion else first_held
    first_tried = min(
        range(low, first_held + 1), key=lambda cut: abs(sizes[first_held] - sizes[cut] - promotion * total)
    )
    bounds = (
        (Split.SEARCH, 0, first_tried),
        (Split.PROMOTION, first_tried, first_held),
        (Split.HOLDOUT, first_held, last),
    )
    return {task: split for split, begin, end in bounds for group in groups[begin:end] for task in group}
