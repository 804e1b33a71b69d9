"""A git repository as a suite of verified tasks (``dgm benchmark mine``)."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic import create_model

from dgm.api.arguments import SettingValues, check_amount, use_settings
from dgm.api.running import run_session
from dgm.benchmarks.mining.session import Mining, MiningOptions, mine_suite, open_mining
from dgm.benchmarks.mining.statements import Ask
from dgm.benchmarks.mining.writing import MinedTask
from dgm.config import Settings, resolve_mining
from dgm.domain import Budget
from dgm.errors import UserError
from dgm.messages import Request
from dgm.meta.answers import Answer, ask_until_readable, read_answer
from dgm.protocols import SandboxEngine
from dgm.sandboxes.building import SandboxBuilder
from dgm.sandboxes.choose import choose
from dgm.steps import OnStep, ignore
from dgm.views.suite import MiningView
from dgm.worker.session import UsageJournal, open_solver

RETRIES = 1
"""Further questions where an answer cannot be read."""


def benchmark_mine(
    repo: str | Path,
    *,
    out: str | Path | None = None,
    history: int = 50,
    bugs: int | None = None,
    setup: str = "",
    test: str = "",
    model: str | None = None,
    max_usd: float | None = None,
    update: bool = False,
    settings: SettingValues | None = None,
    on_step: OnStep = ignore,
) -> MiningView:
    """Make a suite of verified tasks from a git repository: from its history, and from bugs injected into its code.

    Every task runs before and after its fix in sandboxes without a network. The same command continues where it
    stopped. The suite's mined.jsonl says why each commit became no task. Further settings: dgm doctor
    --settings mining.

    Args:
        repo: The git repository.
        out: The suite's folder; default: the repository's name with -suite.
        history: Maximum number of tasks from its history.
        bugs: Maximum number of tasks with an injected bug; Python only, default 30.
        setup: Shell command that installs packages into $DGM_PACKAGES.
        test: Command that runs the tests, such as 'pytest -m "not slow"'.
        model: Model that writes the statements; default: they show the failing tests.
        max_usd: Spending limit for that model in one session.
        update: Add tasks from newer commits.
        settings: A setting, such as mining.since=2024-01-31 or workers=4.
        on_step: is called with the progress.

    Raises:
        UserError: the repository cannot be mined, or nothing of it is a task.
        Infrastructure: a sandbox or the model failed.
    """
    check_amount("max_usd", max_usd)
    for name, count in (("history", history), ("bugs", bugs or 0)):
        if count < 0:
            raise UserError(f"{count} is less than 0", argument=name)
    if max_usd is not None and not model:
        raise UserError("nothing is paid without a model; name one", argument="max_usd")
    chosen, others = resolve_mining(settings or {})
    repo = Path(repo)
    # Beside the user, under the repository's name.
    folder = Path(out) if out else Path(f"{repo.resolve().name.removesuffix('.git') or 'repository'}-suite")
    with use_settings(others, {"models.solve": model}) as resolved:
        engine = choose(resolved.sandbox, resolved)
        options = MiningOptions(
            repo=repo,
            out=folder,
            history=history,
            bugs=bugs,
            setup=setup,
            test=test,
            model=model or "",
            update=update,
            workers=resolved.workers,
            settings=chosen,
        )

        def make_builder(labels: Mapping[str, str], image: str, passwords: bool) -> SandboxBuilder:
            return SandboxBuilder(engine, labels, image, passwords=passwords)

        async def mine() -> MiningView:
            async with (
                _open_asking(model, resolved, engine, max_usd) as ask,
                open_mining(options, engine, make_builder, on_step, ask) as mining,
            ):
                suite, tasks = await mine_suite(mining, engine)
                return _view(mining, suite.version, tasks)

        return run_session(mine)


def _view(mining: Mining, version: str, tasks: Sequence[MinedTask]) -> MiningView:
    return MiningView(
        suite=mining.options.out,
        version=version,
        tasks=dict(sorted(Counter(task.provenance.kind for task in tasks).items())),
        splits=dict(sorted(Counter(task.split for task in tasks).items())),
        units=mining.units,
        candidates=mining.candidates,
        left_out=dict(mining.reasons.most_common()),
        processor_s=round(mining.bench.processor_s, 1),
        packages=tuple(sorted({*mining.environments.remarks.values()} - {""})),
        model=mining.options.model,
    )


@asynccontextmanager
async def _open_asking(
    model: str | None, settings: Settings, engine: SandboxEngine, max_usd: float | None
) -> AsyncIterator[Ask | None]:
    """Open a model for statements, through the gateway as any call; None if none is named.

    An answer that ``max_usd`` may not cover is never asked for: ``BudgetExhausted``.
    """
    if not model:
        yield None
        return
    async with open_solver(engine, settings, UsageJournal(), budget=Budget(usd=max_usd)) as bench:

        async def ask(request: Request, keys: Sequence[str], skeleton: str) -> Mapping[str, object]:
            fields: Any = dict.fromkeys(keys, (object, ...))
            kind = create_model("Statement", __base__=Answer, **fields)
            answer = await ask_until_readable(
                bench, request, lambda text: read_answer(kind, text), RETRIES, "solve", skeleton
            )
            return answer.model_dump()

        yield ask
