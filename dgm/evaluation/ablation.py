"""The effect of each part of an agent: the whole agent against the agent without the part, on the same tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log2

from dgm.domain import TaskId, Verdict
from dgm.evaluation.schedule import AgentResult
from dgm.stats import holm, matched_interval, sign_flip, tasks_needed

LEVEL = 0.05
"""Greatest chance of calling any part's effect where no part has one."""
DIFFERENCE = 0.2
"""Difference of resolved shares for which the number of tasks is computed that would show it."""


class Effect(StrEnum):
    """The verdict on a part."""

    HELPS = "helps"
    HURTS = "hurts"
    NOT_SHOWN = "no effect shown"
    NEEDED = "needed to start"


@dataclass(frozen=True, slots=True)
class PartEffect:
    """The effect of one part. A pair is one attempt at a task that both agents have a verdict on."""

    part: str
    tokens: int
    """Estimated input tokens that the part adds to each turn."""
    effect: Effect
    pairs: int = 0
    tasks: int = 0
    with_part: int = 0
    """Pairs that the whole agent resolved."""
    without_part: int = 0
    """Pairs that the agent without the part resolved."""
    difference: float = 0.0
    """Mean over tasks of the resolved share with the part minus without it."""
    interval: tuple[float, float] = (-1.0, 1.0)
    """The 95 % interval of ``difference``, for this part alone."""
    p: float = 1.0
    """The p-value of ``sign_flip`` over tasks, adjusted by ``holm`` for the number of parts."""


def judge_parts(
    complete: AgentResult, without: Mapping[str, AgentResult], tokens: Mapping[str, int]
) -> Sequence[PartEffect]:
    """Return the effect of each part.

    Args:
        complete: results of the agent with all parts.
        without: results of the agent without a part, by the part.
        tokens: input tokens that each part adds to a turn.
    """
    pairs = {part: _pair_attempts(complete, result) for part, result in without.items()}
    p_values = holm([sign_flip([_sum(each) for each in tasks.values()]) for tasks in pairs.values()])
    return [
        _judge(part, tokens[part], tasks, p) for (part, tasks), p in zip(pairs.items(), p_values, strict=True)
    ]


def fewest_tasks(parts: int) -> int:
    """Return the number of tasks that must change in the same direction before one of ``parts`` is shown to matter."""
    return 1 + ceil(log2(parts / LEVEL))


def tasks_to_show(parts: int) -> int:
    """Return the tasks with which a ``DIFFERENCE`` in one direction is shown in 80 % of ablations of so many parts."""
    # The first step of Holm's method divides the level by the number of parts.
    return tasks_needed(DIFFERENCE, 0.0, alpha=LEVEL / parts)


def _pair_attempts(one: AgentResult, two: AgentResult) -> Mapping[TaskId, list[tuple[bool, bool]]]:
    others = {(done.task, done.attempt): done.verdict is Verdict.RESOLVED for done in two.graded}
    pairs: dict[TaskId, list[tuple[bool, bool]]] = {}
    for done in one.graded:
        if (done.task, done.attempt) in others:
            pair = (done.verdict is Verdict.RESOLVED, others[done.task, done.attempt])
            pairs.setdefault(done.task, []).append(pair)
    return pairs


def _sum(pairs: Sequence[tuple[bool, bool]]) -> int:
    return sum(one - two for one, two in pairs)


def _judge(part: str, tokens: int, tasks: Mapping[TaskId, list[tuple[bool, bool]]], p: float) -> PartEffect:
    shares = [_sum(pairs) / len(pairs) for pairs in tasks.values()]
    difference = sum(shares) / len(shares) if shares else 0.0
    effect = Effect.NOT_SHOWN
    if p <= LEVEL:
        effect = Effect.HELPS if difference > 0 else Effect.HURTS
    every = [pair for pairs in tasks.values() for pair in pairs]
    return PartEffect(
        part=part,
        tokens=tokens,
        effect=effect,
        pairs=len(every),
        tasks=len(tasks),
        with_part=sum(one for one, _ in every),
        without_part=sum(two for _, two in every),
        difference=difference,
        interval=matched_interval(shares),
        p=p,
    )
