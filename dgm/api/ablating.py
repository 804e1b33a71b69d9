"""Ablations of agents from a program (``dgm agent ablate``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dgm.api.arguments import assignments_of, check_amount, model_of, name_of, path_of
from dgm.api.evaluating import EvaluationChoice
from dgm.api.running import run_session
from dgm.api.watcher import OnEvent, Watcher
from dgm.domain import Split
from dgm.errors import UserError
from dgm.evaluation.ablation import Effect, PartEffect
from dgm.models.scripted import Script
from dgm.protocols import Benchmark
from dgm.sessions.ablation import Ablation, begin_ablation, judge_ablation, plan_ablation

__all__ = ["Ablation", "Effect", "PartEffect", "ablate"]


def ablate(  # noqa: PLR0913
    agent: str | Path,
    *,
    parts: Sequence[str] = (),
    benchmark: str | Path | Benchmark | None = None,
    tasks: Sequence[str] = (),
    attempts: int = 1,
    model: str | Script | None = None,
    max_usd: float | None = None,
    workers: int | None = None,
    into: str | Path | None = None,
    settings: Mapping[str, Any] | Sequence[str] | None = None,
    allow_paid: bool = False,
    watcher: Watcher | None = None,
    on_event: OnEvent | None = None,
) -> Ablation:
    """Let an agent try search tasks as it is and without each of its parts, and say which parts help or hurt.

    The same call goes on where it ended and pays for nothing twice.

    Args:
        agent: a folder, or the name of a shipped agent.
        parts: patterns of the parts to leave out, such as ``CLAUDE.md#*`` (default: all).
        benchmark: the suite whose search tasks it tries (default: starter).
        tasks: only this task; repeatable.
        attempts: tries per task.
        model: model that the agent uses (default: auto).
        max_usd: spending limit, earlier sessions included.
        workers: parallel evaluations.
        into: folder to record in.
        settings: a setting such as limits.calls=20.
        allow_paid: whether the model ``auto`` may stand for one that costs money.
        watcher: is informed and asked on the way.
        on_event: is called with each event of the evaluation, model calls left out, once it is on disk.

    Raises:
        UserError: what is wrong, before anything is spent; also if the model costs money and ``max_usd`` is missing.
        ArchiveBusy: another process is writing this evaluation.
        Infrastructure: a sandbox or a model failed before the first task.
    """
    check_amount("max_usd", max_usd)
    chosen = EvaluationChoice(
        benchmark=name_of("benchmarks", benchmark),
        split=Split.SEARCH,
        tasks=tasks,
        attempts=attempts,
        model=model_of(model),
        max_usd=max_usd,
        workers=workers,
        into=path_of(into),
        assignments=assignments_of(settings),
    )
    hearer = watcher or Watcher(on_event, allow_paid=allow_paid)
    return run_session(lambda: _ablate(hearer, str(agent), parts, chosen), hearer)


async def _ablate(watcher: Watcher, agent: str, parts: Sequence[str], chosen: EvaluationChoice) -> Ablation:
    plan = await plan_ablation(agent, parts, chosen, watcher)
    if plan.needs_consent:
        raise UserError(
            f"is missing: {plan.missing} evaluations cost up to {plan.missing * plan.usd_each:.2f} USD",
            argument="max_usd",
        )
    session = await begin_ablation(plan, watcher)
    with session.run:
        report = session.view(await session.perform(watcher))
        return judge_ablation(plan, session, report)
