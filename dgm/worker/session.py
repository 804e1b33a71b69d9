"""One session of models and sandboxes, for a search, a replay, ``solve``, a check or a rehearsal."""

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

from dgm.archive.lock import machine_name
from dgm.archive.volatile_text import UNKNOWN, Conditions
from dgm.config import LimitSettings, Settings
from dgm.domain import ActionId, Budget, Snapshot, Usage
from dgm.errors import Infrastructure
from dgm.gateway.lease import CallLimits
from dgm.gateway.ledger import Ledger
from dgm.gateway.server import Gateway, LendingRules
from dgm.messages import BegunCall, CutCall, Exchange, PaidCall
from dgm.models.choose import names_by_role, open_model
from dgm.models.pricing import Prices
from dgm.protocols import Journal, LentModel, SandboxEngine, SandboxSpec, WireModel
from dgm.search.start import LONGEST_WAIT_S, check_patiently
from dgm.worker.supplies import USUAL, AgentSupplies, Supplies
from dgm.worker.workbench import Allowance, SandboxWorkbench

ACTION = "dgm.action"
"""Label of a sandbox with the id of its action."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LentModels:
    """The models of a session, and the books that are kept of their calls."""

    models: Mapping[str, LentModel]
    """By role, as ``Gateway`` takes them; they are closed with the session."""
    journal: Journal
    ledger: Ledger
    limits: CallLimits = field(default_factory=CallLimits)
    """Limits on the model calls of one action."""
    rules: LendingRules = field(default_factory=LendingRules)
    abilities: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Map of a model's name to the abilities that earlier sessions learned."""


@dataclass(frozen=True, slots=True)
class Session:
    """An open gateway, and the sandboxes of one agent and its descendants."""

    engine: SandboxEngine
    gateway: Gateway
    spec: SandboxSpec
    """Spec of the sandboxes in which agents are checked and improve themselves."""
    limits: LimitSettings
    supplies: Supplies = field(default_factory=Supplies)

    def open_bench(
        self,
        action: ActionId,
        role: str | None = None,
        allowance: Allowance | None = None,
        void_calls: Collection[int] = (),
    ) -> SandboxWorkbench:
        """Return a fresh workbench for an action.

        Args:
            action: the action to which the model calls belong.
            role: of the lent model; default: the kind of the job.
            allowance: limits on all jobs and questions together.
            void_calls: numbers of recorded calls that are not served again.
        """
        return SandboxWorkbench(
            self.engine.open,
            self.gateway,
            action,
            replace(self.spec, labels={**self.spec.labels, ACTION: str(action)}),
            self.limits,
            role,
            allowance,
            heard=set(void_calls),
            supplies=self.supplies,
        )


@asynccontextmanager
async def open_session(
    engine: SandboxEngine,
    source: Snapshot | None,
    limits: LimitSettings,
    lent: LentModels,
    session_id: str = "",
) -> AsyncIterator[Session]:
    """Open a gateway and install what an agent needs; all sandboxes end with the context.

    Args:
        engine: of the sandboxes.
        source: of the agent whose packages are installed; its descendants use the same. None: no agent works.
        limits: of jobs.
        lent: the models.
        session_id: id of a run that is open to write: what a dead process of it left is removed first. Default: a
            new one.

    Raises:
        UserError: the agent's packages or image cannot be installed.
        Infrastructure: a sandbox failed.
    """
    session_id = session_id or uuid.uuid4().hex[:16]
    labels = {"dgm.run": session_id, "dgm.host": machine_name()}
    prefix = f"dgm-gateway-{session_id}-"
    for leftover in Path(tempfile.gettempdir()).glob(prefix + "*"):
        shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    try:
        for model in lent.models.values():
            if isinstance(model, WireModel):
                model.adopt(lent.journal, lent.abilities.get(model.name))
        supplies, spec = Supplies(), SandboxSpec(USUAL, labels)
        if source is not None:
            supplies = AgentSupplies(engine, source)
            spec = await supplies.home_spec(labels)
            # Whatever is missing is installed before anything is paid for.
            await supplies.supply(spec)
        async with Gateway(
            folder, lent.journal, lent.models, lent.ledger, lent.limits, lent.rules
        ) as gateway:
            yield Session(engine, gateway, spec, limits, supplies)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)
        await asyncio.gather(*(model.close() for model in set(lent.models.values())))
        try:
            await engine.reap(labels)
        except Infrastructure as error:
            log.warning("sandboxes may be left: %s", error)


@asynccontextmanager
async def open_solver(
    engine: SandboxEngine,
    settings: Settings,
    journal: "UsageJournal",
    *,
    source: Snapshot | None = None,
    budget: Budget | None = None,
    patch_bytes: int | None = None,
) -> AsyncIterator[SandboxWorkbench]:
    """Open a workbench outside of any run, whose model is that of the role ``solve``.

    Args:
        engine: of the sandboxes.
        settings: name the model, and limit each job.
        journal: adds up the usage.
        source: of the agent; None if only the model is asked.
        budget: for all calls together; default: no limit.
        patch_bytes: limit on an agent's change, instead of the settings'.

    Raises:
        UserError: there is no such model, or its key is missing.
        Infrastructure: it does not answer.
    """
    limits, total = settings.limits, budget or Budget()
    model = open_model(names_by_role(settings)["solve"], settings, longest_wait_s=LONGEST_WAIT_S)
    price = Prices.load(settings).of(model.name)
    ledger = Ledger({model.name: price}, lambda: journal.usage, lambda: total)
    rules = LendingRules(settings.models.aliases)
    lent = LentModels({"solve": model}, journal, ledger, call_limits(limits), rules)
    if patch_bytes is not None:
        limits = limits.model_copy(update={"patch_bytes": patch_bytes})
    async with open_session(engine, source, limits, lent) as session:
        await check_patiently(session.gateway.check_models)
        yield session.open_bench(ActionId(1))


def call_limits(limits: LimitSettings) -> CallLimits:
    """Return the limits on the model calls of one action."""
    return CallLimits(
        calls=limits.calls, tokens=limits.tokens, usd=limits.usd, output_tokens=limits.output_tokens
    )


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
