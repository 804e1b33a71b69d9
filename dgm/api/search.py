"""Searches: ``evolve`` begins one, ``open`` reads it, and ``Evolution.resume`` continues it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dgm import assemble, launch
from dgm.analysis.budgets import Ending
from dgm.api import arguments
from dgm.api.arguments import SettingValues, model_of, name_of, split_engine
from dgm.api.results import Results
from dgm.api.running import run_beside_loop, run_session
from dgm.api.watcher import OnEvent, Watcher
from dgm.archive.finding import check_unpacked
from dgm.archive.run import Run, merge_tables
from dgm.benchmarks.opening import make_paths_absolute
from dgm.config import Settings, resolve, validate_settings
from dgm.domain import Budget
from dgm.errors import UserError
from dgm.models.reach import file_models, require_own_file
from dgm.models.scripted import Script
from dgm.protocols import Benchmark, Operator
from dgm.sandboxes.engine_address import use_engine
from dgm.search.start import SETTABLE, settings_of
from dgm.sinks.companion import start_companion
from dgm.views.plan import PlanView

LIMITS = ("evaluations", "agents", "usd", "tokens", "hours", "until_score", "patience")
"""Settings of the section ``budget`` that a later session may change."""


class Evolution(Results):
    """A search that can be read, reported on, and continued."""

    def resume(
        self,
        *,
        max_usd: float | None = None,
        max_evaluations: int | None = None,
        budget: arguments.Budget | None = None,
        settings: SettingValues | None = None,
        regrade: bool = False,
        sink: Sequence[str] | str | None = None,
        notify: Sequence[str] | str | None = None,
        objects: Sequence[object] = (),
        allow_paid: bool = False,
        on_event: OnEvent | None = None,
        watcher: Watcher | None = None,
    ) -> "Evolution":
        """Continue a search after a stop or a crash; nothing that was paid for is lost.

        Actions that were under way are performed first. Changed settings are recorded, and hold for all later sessions.

        Args:
            max_usd: New limit on the cost of all sessions.
            max_evaluations: New limit on the graded evaluations of all sessions.
            budget: further limits that replace the old ones.
            settings: budget.*, models.*, providers.*, limits.*, scale.*, workers, sandbox, or the new path of
                the benchmark.
            regrade: Repeat evaluations of agents whose model was refused.
            sink: Send curves of this session to a tracker: mlflow:…, wandb:…, tensorboard:FOLDER or otlp:….
            notify: Send notifications of this session to an apprise address, such as ntfy://TOPIC.
            objects: the policy and operators that were passed to ``evolve``, if the run could not record their values.
            allow_paid: whether the model ``auto`` may be one that costs money.
            on_event: is called with each event of the search, model calls left out, once it is on disk.
            watcher: is informed and asked; replaces ``allow_paid`` and ``on_event``.

        Returns:
            The run, when its search has ended.

        Raises:
            UserError: what is wrong, before anything is spent.
            ArchiveBusy: another process works on the run.
        """
        watcher = watcher or Watcher(on_event, allow_paid=allow_paid)
        for thing in objects:
            name_of("operators" if hasattr(thing, "make") else "policies", thing)
        others, engine = split_engine(settings)
        limits = {"budget.usd": max_usd, "budget.evaluations": max_evaluations}
        limits |= budget.settings() if budget else {}
        resolved = resolve(None, others, {**limits, **settings_of_receivers(sink, notify)})
        changes = resolved.model_dump(mode="json", exclude_unset=True)
        check_unpacked(self.folder)

        async def perform() -> Ending:
            with (
                use_engine(engine),
                start_companion(resolved) as name_run,
                Run.open(self.folder, write=True) as opened,
            ):
                launch.check_is_search(opened)
                before = opened.tree.seq
                new_limits = changes.pop("budget", {})
                new = _change_settings(settings_of(opened), changes)
                new_budget = change_budget(assemble.budget_of(opened, new), new_limits)
                prepared = await launch.prepare_again(opened, new, new_budget, watcher, regrade=regrade)
                name_run(opened, before)
                return await launch.perform(opened, prepared, watcher)

        return Evolution.open(self.folder, run_session(perform, watcher))


def evolve(
    file: str | Path | None = None,
    *,
    preset: str | None = None,
    name: str | None = None,
    agent: Sequence[str | Path] | str | Path | None = None,
    benchmark: str | Path | Benchmark | None = None,
    model: str | Script | None = None,
    policy: str | object | None = None,
    operators: Sequence[str | Operator | type] | str | None = None,
    max_usd: float | None = None,
    max_evaluations: int | None = None,
    budget: arguments.Budget | None = None,
    workers: int | None = None,
    seed: int | None = None,
    sandbox: str | None = None,
    settings: SettingValues | None = None,
    sink: Sequence[str] | str | None = None,
    notify: Sequence[str] | str | None = None,
    allow_paid: bool = False,
    on_event: OnEvent | None = None,
    watcher: Watcher | None = None,
) -> Evolution:
    """Start a search for better agents.

    Ctrl-C once ends it gracefully, twice at once; either way it can be resumed.

    Args:
        file: TOML file of settings.
        preset: Start with a published design; the file and options win [list: print them].
        name: Name of the run, a folder in ./archive or $DGM_ARCHIVE.
        agent: Start from a shipped agent such as solid, a folder or a git URL; or from several.
        benchmark: Name or folder of a task suite [default: starter].
        model: openai/…, anthropic/…, offline, … [default: auto].
        policy: Search policy [default: lineage].
        operators: What makes children [default: self-edit].
        max_usd: Limit on the cost of model calls.
        max_evaluations: Limit on graded evaluations [default: 160].
        budget: further limits.
        workers: Parallel actions [default: 2].
        seed: Random seed [default: 0].
        sandbox: auto, docker or bubblewrap.
        settings: Any setting, such as budget.hours=8.
        sink: Send curves to a tracker: mlflow:…, wandb:…, tensorboard:FOLDER or otlp:….
        notify: Send notifications to an apprise address, such as ntfy://TOPIC.
        allow_paid: whether the model ``auto`` may be one that costs money.
        on_event: is called with each event of the search, model calls left out, once it is on disk.
        watcher: is informed and asked; replaces ``allow_paid`` and ``on_event``.

    Returns:
        The run, when its search has ended.

    Raises:
        UserError: what is wrong, before anything is spent.
        Infrastructure: a sandbox or a model failed before the search began.
    """
    watcher = watcher or Watcher(on_event, allow_paid=allow_paid)
    others, engine = split_engine(settings)
    values = {
        **(budget.settings() if budget else {}),
        **({"sandbox": sandbox} if sandbox else {}),
        **settings_of_arguments(
            agent, benchmark, model, policy, operators, max_usd, max_evaluations, workers, seed
        ),
        **settings_of_receivers(sink, notify),
    }
    chosen = _choose_settings(file, others, values, preset)
    folder = launch.new_folder(name)

    async def perform() -> Ending:
        with use_engine(engine), start_companion(chosen) as name_run:
            prepared = await launch.prepare(chosen, watcher)
            with launch.create(folder, prepared) as run:
                name_run(run, 0)
                watcher.created(run, prepared.settings)
                return await launch.perform(run, prepared, watcher)

    return Evolution.open(folder, run_session(perform, watcher))


def plan(
    file: str | Path | None = None,
    *,
    preset: str | None = None,
    settings: SettingValues | None = None,
    budget: arguments.Budget | None = None,
    watcher: Watcher | None = None,
    **options: Any,  # noqa: ANN401
) -> PlanView:
    """Return what the budget of a search buys and what its tasks can show; call no model and write nothing.

    Args:
        file: as for ``evolve``.
        preset: as for ``evolve``.
        settings: as for ``evolve``.
        budget: as for ``evolve``.
        watcher: is asked where ``auto`` may stand for a paid model.
        options: agent, benchmark, model, policy, operators, max_usd, max_evaluations, workers and seed of ``evolve``.

    Raises:
        UserError: what is wrong with the settings.
    """
    others, engine = split_engine(settings)
    values = {**(budget.settings() if budget else {}), **settings_of_arguments(**options)}
    chosen = _choose_settings(file, others, values, preset)
    with use_engine(engine):
        named, parts = launch.open_parts(chosen, watcher or Watcher())
        return run_beside_loop(lambda: PlanView.load(named, parts))


def _choose_settings(
    file: str | Path | None,
    settings: Any,  # noqa: ANN401
    values: Mapping[str, Any],
    preset: str | None,
) -> Settings:
    source = Path(file) if file is not None else None
    chosen = make_paths_absolute(resolve(source, settings, values, preset))
    if source:
        require_own_file(source, chosen, file_models(source))
    return chosen


async def evolve_async(file: str | Path | None = None, **options: Any) -> Evolution:  # noqa: ANN401
    """Start a search beside others in the same event loop; arguments and errors of ``evolve``."""
    return await asyncio.to_thread(evolve, file, **options)


def open(name: str | Path) -> Evolution:  # noqa: A001  (as gzip.open, tarfile.open)
    """Open a run to read it and to go on with it.

    Args:
        name: its folder, its name under ``./archive`` or ``$DGM_ARCHIVE``, or a packed run.

    Raises:
        UserError: there is none.
        ArchiveCorrupt: it is damaged.
    """
    return Evolution.open(name)


def settings_of_arguments(
    agent: Sequence[str | Path] | str | Path | None = None,
    benchmark: str | Path | Benchmark | None = None,
    model: str | Script | None = None,
    policy: str | object | None = None,
    operators: Sequence[str | Operator | type] | str | None = None,
    max_usd: float | None = None,
    max_evaluations: int | None = None,
    workers: int | None = None,
    seed: int | None = None,
) -> Mapping[str, Any]:
    """Return the settings that parameters of ``evolve`` stand for, by dotted name."""
    names = [str(name) for name in ([agent] if isinstance(agent, str | Path) else agent or [])]
    values = {
        "seed_agent": None if agent is None else names[0] if len(names) == 1 else names,
        "benchmark": name_of("benchmarks", benchmark),
        "model": model_of(model),
        "operator": _join_operators(operators),
        "budget.usd": max_usd,
        "budget.evaluations": max_evaluations,
        "workers": workers,
        "seed": seed,
        "policy.name": name_of("policies", policy),
    }
    return {key: value for key, value in values.items() if value is not None}


def settings_of_receivers(
    sink: Sequence[str] | str | None, notify: Sequence[str] | str | None
) -> Mapping[str, Any]:
    """Return the settings that the receivers of a session stand for, by dotted name."""
    addresses = {"sinks.to": sink, "notify.to": notify}
    return {key: [to] if isinstance(to, str) else [*to] for key, to in addresses.items() if to is not None}


def change_budget(before: Budget, limits: Mapping[str, Any]) -> Budget:
    """Return a budget with some of its limits replaced.

    Args:
        before: the budget of the last session.
        limits: name as in ``BudgetSettings`` → new limit.

    Raises:
        UserError: it is no limit that a later session may change.
    """
    changes = dict(limits)
    if other := sorted(changes.keys() - set(LIMITS)):
        raise UserError(
            f"it cannot be changed; limits are {', '.join(LIMITS)}", argument=f"budget.{other[0]}"
        )
    if "hours" in changes:
        changes["seconds"] = changes.pop("hours") * 3600
    if "until_score" in changes:
        changes["score"] = changes.pop("until_score")
    return replace(before, **changes)


def _change_settings(before: Settings, changes: Mapping[str, Any]) -> Settings:
    allowed = (*SETTABLE, "benchmark")
    if other := sorted(changes.keys() - set(allowed)):
        raise UserError(
            f"setting {other[0]} cannot be changed; those that can are {', '.join(allowed)} and budget"
        )
    after = validate_settings(merge_tables(before.model_dump(mode="json"), changes), {"": "settings"})
    return make_paths_absolute(after) if "benchmark" in changes else after


def _join_operators(operators: Sequence[Any] | str | None) -> str | None:
    if operators is None or isinstance(operators, str):
        return operators
    return "+".join(str(name_of("operators", operator)) for operator in operators)
