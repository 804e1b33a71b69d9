"""A model that is asked for the statements of mined tasks: through the gateway, priced and limited as any call."""

import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from dgm.archive.this_machine import machine_name
from dgm.benchmarks.mining.statements import Ask
from dgm.config import Settings
from dgm.domain import Budget
from dgm.messages import Request
from dgm.meta.answers import ask_until_readable, read_object
from dgm.protocols import SandboxEngine, SandboxSpec
from dgm.worker.solving import SolveContext, UsageJournal, open_bench
from dgm.worker.supplies import USUAL

RETRIES = 1
"""Further questions where an answer cannot be read."""


@asynccontextmanager
async def open_asking(
    model: str, settings: Settings, engine: SandboxEngine, max_usd: float | None = None
) -> AsyncIterator[Ask | None]:
    """Open a model for statements; None if none is named.

    An answer that ``max_usd`` may not cover is never asked for: ``BudgetExhausted``.

    Raises:
        UserError: there is no such model, or its key is missing.
        Infrastructure: it does not answer.
    """
    if not model:
        yield None
        return
    labels = {"dgm.run": f"mine-{uuid.uuid4().hex}", "dgm.host": machine_name()}
    means = SolveContext(settings, engine.name, 0.0, Budget(usd=max_usd))
    async with open_bench(engine, SandboxSpec(USUAL, labels), means, UsageJournal()) as bench:

        async def ask(request: Request, keys: Sequence[str], skeleton: str) -> Mapping[str, object]:
            return await ask_until_readable(
                bench, request, lambda text: read_object(text, keys), RETRIES, "solve", skeleton
            )

        yield ask
