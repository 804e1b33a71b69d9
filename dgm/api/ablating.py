"""Ablations of agents from a program (``dgm agent ablate``)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Unpack

from dgm.api.evaluating import EvaluateArguments, choose_conditions
from dgm.blocking import OnEvent, ProgramWatcher, block
from dgm.domain import Split
from dgm.errors import UserError
from dgm.evaluation.ablation import Effect, PartEffect
from dgm.sessions.ablation import Ablation, begin_ablation, judge_ablation, plan_ablation

__all__ = ["Ablation", "Effect", "PartEffect", "ablate"]


def ablate(
    agent: str | Path,
    *,
    parts: Sequence[str] = (),
    on_event: OnEvent | None = None,
    **given: Unpack[EvaluateArguments],
) -> Ablation:
    """Let an agent try tasks as it is and without each of its parts, and say which parts help or hurt; blocks.

    The same call goes on where it ended and pays for nothing twice.

    Args:
        agent: a folder, or the name of a shipped agent.
        parts: patterns of the parts to leave out, such as ``CLAUDE.md#*``; all of them unless it is given.
        on_event: is called with each event of the evaluation, model calls left out, once it is on disk.
        given: see ``EvaluateArguments``, but the split is ``search`` unless it is given.

    Raises:
        UserError: what is wrong, before anything is spent; also if the model costs money and ``max_usd`` is missing.
        ArchiveBusy: another process is writing this evaluation.
        Infrastructure: a sandbox or a model failed before the first task.
    """
    return block(lambda session: _ablate(session, str(agent), parts, given), on_event)


async def _ablate(
    session: ProgramWatcher, agent: str, parts: Sequence[str], given: EvaluateArguments
) -> Ablation:
    chosen: EvaluateArguments = {"split": Split.SEARCH.value, **given}
    with choose_conditions(session, **chosen) as conditions:
        plan = await plan_ablation(agent, parts, conditions, session)
        if plan.needs_consent:
            raise UserError(
                f"max_usd is missing: {plan.missing} evaluations cost up to {plan.missing * plan.usd_each:.2f} USD"
            )
        prepared = await begin_ablation(plan, session)
        with prepared.made:
            report = prepared.report(await prepared.perform(session))
    return judge_ablation(plan, report)
