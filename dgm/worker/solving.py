"""The work of one agent on one repository of the user's: outside of any search, with nothing recorded."""

import asyncio
import logging
import shutil
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dgm.archive.repository import patch
from dgm.archive.this_machine import machine_name
from dgm.archive.volatile_text import UNKNOWN, Conditions
from dgm.config import Settings
from dgm.domain import ActionId, Budget, Snapshot, Usage
from dgm.gateway.lease import CallLimits
from dgm.gateway.ledger import Ledger
from dgm.gateway.server import Gateway, LendingRules
from dgm.messages import BegunCall, CutCall, Exchange, PaidCall
from dgm.models.choose import names_by_role, open_model
from dgm.models.pricing import Prices
from dgm.processes import StandstillWatch
from dgm.protocols import Job, JobKind, SandboxEngine, SandboxSpec, WireModel, Work
from dgm.sandboxes.choose import choose
from dgm.search.model_checks import LONGEST_WAIT_S, check_patiently
from dgm.worker.supplies import AgentSupplies, Supplies
from dgm.worker.user_repository import LIMIT_BYTES, find_ignored_around
from dgm.worker.workbench import SandboxWorkbench

log = logging.getLogger(__name__)

WORKDIR = "/work/repo"


@dataclass(frozen=True, slots=True)
class SolveContext:
    """The settings, sandbox and time of an agent at work."""

    settings: Settings
    """Models, prices and limits; ``limits.usd`` is the whole limit on its cost."""
    sandbox: str
    time_limit_s: float
    budget: Budget = field(default_factory=Budget)
    """Limit on the cost of all questions together."""


class UsageJournal:
    """A journal for work that is not part of a run: it adds up usage and keeps nothing."""

    def __init__(self) -> None:
        self.usage = Usage()

    def numbers(self, action: ActionId) -> tuple[int, Collection[int]]:  # noqa: ARG002  (nothing was recorded)
        """Return none: nothing was recorded."""
        return 0, ()

    def recall(self, action: ActionId, numbers: Collection[int]) -> tuple[Sequence[Exchange], Conditions]:  # noqa: ARG002
        """Return none: nothing was recorded."""
        return (), UNKNOWN

    def cut_calls(self, action: ActionId) -> Sequence[CutCall]:  # noqa: ARG002  (nothing was ever recorded)
        """Return none: nothing was recorded."""
        return ()

    async def begin(self, call: BegunCall) -> None:
        """Record nothing."""

    async def record(self, call: PaidCall, settles: Sequence[CutCall] = ()) -> None:  # noqa: ARG002
        """Add the call's usage to the sum."""
        self.usage += call.reply.usage

    def book(self, action: ActionId, number: int, model: str, role: str, usage: Usage) -> None:  # noqa: ARG002
        """Add the usage to the sum."""
        self.usage += usage

    def lose(self, call: BegunCall) -> None:
        """Add the call's worst case to the sum."""
        self.usage += call.most

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Write the findings to the log, and add the usage to the sum."""
        log.info("%s: %s %s", model, words, dict(abilities))
        self.usage += usage or Usage()

    def waits(self, model: str, words: str, until: float) -> None:
        """Write the wait to the log, in seconds."""
        log.warning("%s: waits %.0f s: %s", model, until - time.time(), words)

    def overran(self, model: str, asked: int, billed: int) -> None:
        """Write the excess of output tokens to the log."""
        log.warning("%s: gave %d output tokens where at most %d were asked for", model, billed, asked)

    def refuse(self, action: ActionId, role: str, status: int, code: str, message: str) -> None:
        """Write the refusal, or what was left out of a request, to the log."""
        log.info("action %d (%s): %d %s: %s", action, role, status, code, message)


@dataclass(frozen=True, slots=True)
class SolveResult:
    """The agent's work, its usage and the changed files."""

    work: Work
    usage: Usage
    changed: tuple[str, ...]
    """Files that the patch creates, changes or removes."""


async def solve(
    source: Snapshot, repo: Path, before: Snapshot, problem: str, means: SolveContext, spent: UsageJournal
) -> SolveResult:
    """Let the agent work on a copy in a sandbox.

    Args:
        source: the agent's own folder.
        repo: the person's repository; only asked for its ignored files.
        before: its files.
        problem: the task.
        means: settings, sandbox and time of the agent.
        spent: the usage is added here, whatever the result.

    Raises:
        AgentFault: the agent's result cannot be used.
        Infrastructure: the sandbox or the model failed.
    """
    engine = choose(means.sandbox, means.settings)
    supplies = AgentSupplies(engine, source)
    labels = {"dgm.run": f"solve-{uuid.uuid4().hex}", "dgm.host": machine_name()}
    spec = await supplies.home_spec(labels)
    job = Job(JobKind.SOLVE, problem, source, before, spec.image, WORKDIR, means.time_limit_s)
    async with open_bench(engine, spec, means, spent, supplies) as bench, StandstillWatch() as watch:
        work = await bench.work(job)
        if work.completed.exit_code and (stopped := watch.find_standstill()):
            log.warning("%s: the agent may have lacked time or answers by that", stopped)
    return await asyncio.to_thread(_drop_ignored_files, work, repo, before, spent.usage)


def _drop_ignored_files(work: Work, repo: Path, before: Snapshot, usage: Usage) -> SolveResult:
    """Drop files that the person's own git ignores; the workbench has applied the repository's own rules."""
    after = work.workspace
    dropped = find_ignored_around(repo, [name for name in after if name not in before])
    if dropped:
        after = {name: entry for name, entry in after.items() if name not in dropped}
        work = replace(work, workspace=after, patch=patch(before, after))
    changed = (name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return SolveResult(work, usage, tuple(sorted(changed)))


@asynccontextmanager
async def open_bench(
    engine: SandboxEngine,
    spec: SandboxSpec,
    means: SolveContext,
    spent: UsageJournal,
    supplies: Supplies | None = None,
) -> AsyncIterator[SandboxWorkbench]:
    """Open a workbench outside of any run, whose model is that of the role ``solve``.

    Raises:
        UserError: there is no such model, or its key is missing.
        Infrastructure: it does not answer.
    """
    limits = means.settings.limits.model_copy(update={"patch_bytes": LIMIT_BYTES})
    name = names_by_role(means.settings)["solve"]
    model = open_model(name, means.settings, longest_wait_s=LONGEST_WAIT_S)
    prices = Prices.load(means.settings)
    ledger = Ledger({model.name: prices.of(model.name)}, lambda: spent.usage, lambda: means.budget)
    most = CallLimits(
        calls=limits.calls, tokens=limits.tokens, usd=limits.usd, output_tokens=limits.output_tokens
    )
    folder = Path(tempfile.mkdtemp(prefix="dgm-gateway-"))
    try:
        if isinstance(model, WireModel):
            model.adopt(spent, None)
        rules = LendingRules(means.settings.models.aliases)
        async with Gateway(folder, spent, {"solve": model}, ledger, most, rules) as gateway:
            await check_patiently(gateway.check_models)
            yield SandboxWorkbench(
                engine.open, gateway, ActionId(1), spec, limits, supplies=supplies or Supplies()
            )
    finally:
        await model.close()
        await engine.reap(spec.labels)
        await asyncio.to_thread(shutil.rmtree, folder, True)
