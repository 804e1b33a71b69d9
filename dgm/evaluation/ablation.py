"""The effect of each part of an agent: the whole agent against the agent without the part, on the same tasks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, log2

from dgm.domain import TaskId, Verdict
from dgm.evaluation.evaluating import AgentResult
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
    gained: int = 0
    """Tasks resolved more often with the part."""
    lost: int = 0
    """Tasks resolved less often with the part."""
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


def tasks_to_show(parts: int, noise: float = 0.0) -> int:
    """Return the tasks with which a ``DIFFERENCE`` is shown in 80 % of ablations of ``parts`` parts.

    Args:
        parts: their number; the level is divided by it, which is the first step of ``holm``.
        noise: share of tasks that change in the other direction.
    """
    noise = min(noise, (1 - DIFFERENCE) / 2)
    return tasks_needed(noise + DIFFERENCE, noise, alpha=LEVEL / parts)


def estimate_noise(effects: Sequence[PartEffect]) -> float:
    """Return the mean share of tasks that changed against the direction of the majority."""
    tasks = sum(each.tasks for each in effects)
    return sum(min(each.gained, each.lost) for each in effects) / tasks if tasks else 0.0


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
        gained=sum(share > 0 for share in shares),
        lost=sum(share < 0 for share in shares),
        difference=difference,
        interval=matched_interval(shares),
        p=p,
    )
