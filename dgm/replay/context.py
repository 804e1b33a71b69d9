"""A worker for replays: the usual sandboxes and gateway, with recorded replies behind them and no money."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import SEED, Budget, Usage
from dgm.gateway.lease import CallLimits
from dgm.gateway.ledger import Ledger
from dgm.gateway.server import LendingRules
from dgm.models.builtin import DryRun
from dgm.models.choose import drawing_of
from dgm.models.pricing import FREE, Price, Prices
from dgm.protocols import Benchmark, Operator, SandboxEngine
from dgm.replay.recording import ReplayJournal, ReplayRun, make_recorded_models
from dgm.search.run_settings import fixed_name_of
from dgm.worker.session import LentModels, open_session
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
    models = {**make_recorded_models(run, settings), "dry-run": DryRun()}
    lent = LentModels(
        models,
        ReplayJournal(run),
        Ledger(_prices_by_name(settings, {model.name for model in models.values()}), Usage, Budget),
        means.limits,
        LendingRules(settings.models.aliases, drawing_of(settings), fixed_name_of(run)),
    )
    with TemporaryDirectory(prefix="dgm-replay-", ignore_cleanup_errors=True) as scratch:
        async with open_session(means.engine, run.source(SEED), settings.limits, lent) as session:
            again = ReplayRun(run, None, Path(scratch))
            yield Worker(again, session, means.benchmark, means.operators, settings)


def _prices_by_name(settings: Settings, names: set[str]) -> Mapping[str, Price]:
    """Return each model's price; it matters only if an action's money limit made the gateway refuse a call."""
    prices = Prices.load(settings)
    return {name: prices.of(name) if prices.knows(name) else FREE for name in names}
