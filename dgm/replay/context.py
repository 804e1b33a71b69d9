"""A worker for replays: the usual sandboxes and gateway, with recorded replies behind them and no money."""

import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.run import Run
from dgm.archive.this_machine import machine_name
from dgm.config import Settings
from dgm.domain import SEED, Budget, Usage
from dgm.gateway.lease import CallLimits
from dgm.gateway.ledger import Ledger
from dgm.gateway.server import Gateway, LendingRules
from dgm.models.builtin import DryRun
from dgm.models.choose import drawing_of
from dgm.models.pricing import FREE, Price, Prices
from dgm.protocols import Benchmark, Operator, SandboxEngine
from dgm.replay.recording import ReplayJournal, ReplayRun, make_recorded_models
from dgm.search.run_settings import fixed_name_of
from dgm.worker.supplies import AgentSupplies
from dgm.worker.worker import Worker


@dataclass(frozen=True, slots=True)
class ReplayContext:
    """The engine, benchmark, operators and limits of a replay."""

    engine: SandboxEngine
    benchmark: Benchmark
    operators: Mapping[str, Operator]
    limits: CallLimits
    """Limits on the model calls of one action, as in the run."""


@asynccontextmanager
async def open_worker(run: Run, settings: Settings, means: ReplayContext) -> AsyncIterator[Worker]:
    """Open a worker that answers agents from the record of ``run``; nothing it makes outlives the context.

    Raises:
        Infrastructure: the sandboxes' engine failed.
    """
    labels = {"dgm.run": f"replay-{uuid.uuid4().hex}", "dgm.host": machine_name()}
    folder = Path(tempfile.mkdtemp(prefix="dgm-replay-"))
    models = {**make_recorded_models(run, settings), "dry-run": DryRun()}
    ledger = Ledger(_prices_by_name(settings, {model.name for model in models.values()}), Usage, Budget)
    try:
        supplies = AgentSupplies(means.engine, run.source(SEED))
        rules = LendingRules(settings.models.aliases, drawing_of(settings), fixed_name_of(run))
        async with Gateway(
            folder / "gateway", ReplayJournal(run), models, ledger, means.limits, rules
        ) as gateway:
            yield Worker(
                run=ReplayRun(run, None, folder),
                engine=means.engine,
                gateway=gateway,
                benchmark=means.benchmark,
                operators=means.operators,
                settings=settings,
                spec=await supplies.home_spec(labels),
                supplies=supplies,
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        await means.engine.reap(labels)


def _prices_by_name(settings: Settings, names: set[str]) -> Mapping[str, Price]:
    """Return each model's price; it matters only if an action's money limit made the gateway refuse a call."""
    prices = Prices.load(settings)
    return {name: prices.of(name) if prices.knows(name) else FREE for name in names}
