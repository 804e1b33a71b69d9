"""Rehearsal of an agent before any model is called: its own self-check, and one job whose model only says DONE.

Children pass the same stages in ``vetting``. The rehearsal is for agents without vetting: the seed of a new
run, and agents from folders.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dgm.config import LimitSettings, Settings
from dgm.domain import ActionId, Budget, Snapshot, TaskId, Usage
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.gateway.lease import DRY_RUN
from dgm.gateway.ledger import Ledger
from dgm.gateway.model_names import DEFAULT
from dgm.gateway.server import LendingRules
from dgm.meta.vetting import Stages
from dgm.models.builtin import DryRun
from dgm.models.choose import AUTO, names_by_role
from dgm.processes import repeat_after_standstill
from dgm.protocols import Completed, Grade, Model, SandboxEngine, Work
from dgm.worker.own_start import allow_seed_start, find_start_seconds, follow_seed_start
from dgm.worker.session import LentModels, UsageJournal, open_session
from dgm.worker.workbench import SandboxWorkbench


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What the start of an agent showed."""

    limits: LimitSettings
    """The limits with room for the agent's children (``follow_seed_start``)."""
    turn_tokens: int
    """Estimated input tokens of its first turn: prompts, tools and instructions; 0 if it asked nothing."""


async def rehearse(name: str, source: Snapshot, engine: SandboxEngine, settings: Settings) -> Rehearsal:
    """Run an agent's self-check and one dry job, each in a sandbox that is removed afterwards.

    Args:
        name: of the agent, for messages.
        source: of the agent.
        engine: of the sandboxes.
        settings: the agent asks for the model of the role ``solve``; ``limits.check_s`` bounds the self-check and the
            dry job if it is more than ``SEED_S``.

    Raises:
        UserError: the agent cannot start; the message has its program's last output.
        Infrastructure: the sandboxes failed, which says nothing about the agent.
    """
    limits = settings.limits
    allowed = settings.model_copy(update={"limits": allow_seed_start(limits)})

    async def start() -> tuple[float, int]:
        async with open_rehearsal(source, engine, allowed, DryRun(stands_for(settings, "solve"))) as bench:
            stages = Stages(bench, bench.spec.image, allowed.limits.check_s, (), refuse_probe)
            # Side by side, because starting a sandbox takes as long as the work in it.
            ends = await asyncio.gather(
                stages.check(source), stages.start_solve(source), return_exceptions=True
            )
            # A sandbox that failed says nothing about the agent, whatever its other sandbox says.
            faults = [end for end in ends if isinstance(end, BaseException)]
            for fault in sorted(faults, key=lambda one: not isinstance(one, Infrastructure)):
                raise fault
            work = next((end for end in ends if isinstance(end, Work)), None)
            done = [end for end in (ends[0], work and work.completed) if isinstance(end, Completed)]
            calls = work.dry_calls if work else None
            return max(map(find_start_seconds, done)), calls.turn_tokens if calls else 0

    try:
        seconds, tokens = await repeat_after_standstill(start, lambda _: False)
        return Rehearsal(follow_seed_start(limits, seconds), tokens)
    except AgentFault as fault:
        raise UserError(f"{name}: the agent cannot start, so nothing was begun: {fault}") from fault
    except Infrastructure as error:
        raise Infrastructure(
            f"{name}: whether the agent can start was not found out, for its sandbox failed: {error}"
        ) from error


@asynccontextmanager
async def open_rehearsal(
    source: Snapshot, engine: SandboxEngine, settings: Settings, model: Model
) -> AsyncIterator[SandboxWorkbench]:
    """Open a workbench for an agent's rehearsal; its sandboxes are removed when the context ends.

    Args:
        source: of the agent; its packages are installed.
        engine: of the sandboxes.
        settings: limits of the agent, and names that it may ask for.
        model: is lent to it under the name of a model of the settings; its calls are neither journaled nor priced.

    Raises:
        UserError: the packages cannot be installed.
        Infrastructure: a sandbox failed.
    """
    lent = LentModels(
        {DRY_RUN: model},
        UsageJournal(),
        Ledger({}, Usage, Budget),
        rules=LendingRules(settings.models.aliases, any_name=model.name == DEFAULT),
    )
    async with open_session(engine, source, settings.limits, lent) as session:
        yield session.open_bench(ActionId(1), DRY_RUN)


def stands_for(settings: Settings, role: str) -> str:
    """Return the full name of the model that a dry model stands for; ``default`` while none is chosen."""
    name = names_by_role(settings)[role]
    return DEFAULT if name == AUTO else name


async def refuse_probe(_source: Snapshot, task: TaskId) -> Grade:
    """Refuse to try a task: a rehearsal has none."""
    raise AssertionError(f"no task was to be tried ({task})")
