"""The one path on which every search begins and continues.

A session is prepared before anything is written or paid for: settings, sandboxes, benchmark, the seed's own
start, and one small call to each model. A ``Watcher`` informs and asks the caller on the way.
"""

import asyncio
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm import assemble
from dgm.analysis.budgets import Ending, Reason
from dgm.api.promotion import perform_due_round
from dgm.api.watcher import Watcher
from dgm.archive.events import Event, RunStopped
from dgm.archive.finding import archive_folders
from dgm.archive.live import begin_checks, end_checks
from dgm.archive.run import Run, RunKind
from dgm.config import Settings
from dgm.consents import remember_own
from dgm.domain import SEED, Budget
from dgm.errors import Hint, Infrastructure, UserError
from dgm.meta.seeds import read_seeds
from dgm.models.auto import settle_auto
from dgm.models.choose import AUTO, all_names
from dgm.models.reach import list_reach
from dgm.paths import NOT_RUNS
from dgm.protocols import Checked
from dgm.sandboxes.engine_address import check_engine
from dgm.search.loop import perform_until_stopped
from dgm.search.start import (
    change_event,
    check_budget_ends_run,
    check_models,
    find_priced_models,
    note_checks,
    require_consent,
    require_models,
    settings_of,
    withdraw_refused_verdicts,
    worst_of_checks,
)
from dgm.views.plan import PlanView
from dgm.worker.agent_check import rehearse

_BEFORE_ROUND = (Reason.PROMOTION, Reason.GOAL, Reason.STANDSTILL, Reason.NOTHING_LEFT)
"""Ends of a segment or a search after which a round of promotion may be due."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class PreparedSession:
    """The settings, parts and model checks of a session."""

    settings: Settings
    parts: assemble.RunParts
    checks: Sequence[Checked]


async def prepare(settings: Settings, watcher: Watcher) -> PreparedSession:
    """Find every error in a new search before it starts; write nothing, and pay only for the models' checks.

    Args:
        settings: with ``auto`` or a model's name; paths in them are absolute.
        watcher: is told and asked.

    Raises:
        UserError: the first thing wrong.
        Infrastructure: a sandbox or a model failed.
    """
    settings, parts = open_parts(settings, watcher)
    await require_models(settings)
    check_budget_ends_run(settings.budget.budget(), settings)
    if watcher.wants_plan and find_priced_models(settings):
        watcher.planned(await asyncio.to_thread(PlanView.load, settings, parts))
    watcher.confirm(settings, settings.budget.budget(), 0.0)
    with watcher.step("starting the seed agent in a sandbox"):
        for name, source, _ in read_seeds(settings):
            rehearsal = await rehearse(name, source, parts.engine, settings)
            settings = settings.model_copy(update={"limits": rehearsal.limits})
    with watcher.step("checking the models"):
        checks = await check_models(settings)
    watcher.models_checked(settings, checks)
    return PreparedSession(settings, parts, checks)


def open_parts(settings: Settings, watcher: Watcher) -> tuple[Settings, assemble.RunParts]:
    """Return the settings of a new search, with every ``auto`` replaced by a model, and its parts.

    Raises:
        UserError: the first thing wrong that needs no sandbox and no model.
    """
    with watcher.step("opening the benchmark and its sandboxes"):
        parts = assemble.parts_of(settings)
    assemble.check_settings(settings)
    assemble.check_goals(settings.budget.budget(), settings, parts)
    return name_models(settings, watcher), parts


def new_folder(name: str | None) -> Path:
    """Return the folder for a new run of this name, in the first folder where runs are looked for.

    Args:
        name: None for a name made from the current time.

    Raises:
        UserError: the name is invalid, or the folder exists already.
    """
    chosen = time.strftime("run-%Y%m%d-%H%M%S") if name is None else name
    if not NAME.fullmatch(chosen) or chosen in NOT_RUNS:
        raise UserError(
            f"{chosen!r}: a run's name is made of letters, digits, '.', '_' and '-' (not {', '.join(NOT_RUNS)})",
            argument="name",
        )
    folder = next(archive_folders()) / chosen
    if folder.exists():
        raise UserError(
            f"{folder} exists already; choose another name",
            argument="name",
            hint=Hint("or continue it", "resume", (folder.name,)),
        )
    return folder


def create(folder: Path, prepared: PreparedSession) -> Run:
    """Create the run, open to write, with its seed as agent 0 and the costs of its models' checks.

    Raises:
        UserError: the folder exists, or an error of ``assemble.create``.
    """
    # First, so that a run whose creation is cut off is known to be this user's.
    remember_own(list_reach(prepared.settings))
    run = assemble.create(folder, prepared.settings, prepared.parts)
    note_checks(run, prepared.settings, prepared.checks)
    return run


async def prepare_again(
    run: Run, settings: Settings, budget: Budget, watcher: Watcher, *, regrade: bool = False
) -> PreparedSession:
    """Find every error in a further session of a search, and record in its log that it continues.

    Args:
        run: a search, open to write.
        settings: from here on; differences from the run's settings are recorded.
        budget: of this session.
        watcher: is told and asked.
        regrade: whether verdicts on agents that were refused their model are withdrawn.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names addresses of its own.
        UserError: the first thing wrong.
        Infrastructure: a sandbox failed.
    """
    require_consent(run, settings)
    remember_own(list_reach(settings))
    settings = name_models(settings, watcher)
    event = change_event(settings_of(run), settings)
    check_budget_ends_run(budget, settings)
    parts = await _open_parts_again(
        run, settings, watcher, changed="sandbox" in event.settings if event else False
    )
    assemble.check_goals(budget, settings, parts)
    watcher.confirm(settings, budget, run.tree.spend.usd)
    checks: Sequence[Checked] = ()
    try:
        checks = await check_models_again(run, settings, watcher)
    except Infrastructure as error:
        # The search waits for the provider.
        watcher.model_away(error)
    withdrawn: Sequence[Event] = withdraw_refused_verdicts(run) if regrade else ()
    assemble.record_resume(run, budget, parts, [*([event] if event else ()), *withdrawn])
    note_checks(run, settings, checks)
    if regrade:
        watcher.withdrawn(len(withdrawn))
    return PreparedSession(settings, parts, checks)


async def perform(run: Run, prepared: PreparedSession, watcher: Watcher) -> Ending:
    """Search until a budget is spent, nothing is left, or a stop is asked for.

    With ``promotion.every`` the search runs in segments, and a round of promotion follows each of them.

    Raises:
        asyncio.CancelledError: stopped at once; nothing recorded is lost.
    """
    settings, parts = prepared.settings, prepared.parts
    ended: Ending | None = None
    while True:
        if ended is None or ended.reason in _BEFORE_ROUND:
            unfinished = await perform_due_round(run, settings, parts, watcher)
            if unfinished is not None:
                if not run.tree.stop_reason:
                    run.append(RunStopped(unfinished.reason.value))
                return unfinished
        if ended is not None and ended.reason is not Reason.PROMOTION:
            return ended
        opening = assemble.search(run, settings, parts, watcher.event)
        with watcher.show(run, settings):
            ended = await perform_until_stopped(run, opening, watcher.begins)


def check_is_search(run: Run) -> None:
    """Make sure that a run can be continued as a search.

    Raises:
        UserError: the run is an evaluation or simulated.
    """
    if run.kind is RunKind.SIMULATION:
        raise UserError(f"{run.name} is simulated; it continues where its simulation is repeated")
    if run.kind is not RunKind.SEARCH:
        raise UserError(
            f"{run.name} is an evaluation, not a search; it continues where its command is repeated"
        )


def name_models(settings: Settings, watcher: Watcher) -> Settings:
    """Return the settings with ``auto`` replaced by a model.

    Raises:
        UserError: only a model that costs money is available, and the watcher does not know whether it may be
            used.
    """
    if AUTO not in all_names(settings):
        return settings
    settled, why = settle_auto(settings, watcher.may_use)
    watcher.model_chosen(why)
    return settled


async def _open_parts_again(
    run: Run, settings: Settings, watcher: Watcher, *, changed: bool
) -> assemble.RunParts:
    """Return the parts for the rest of the run; if the sandbox's kind changed, check that the seed starts in it.

    Raises:
        UserError: no sandbox, another engine than before, no such benchmark or one of another content, or the seed
            cannot start.
    """
    sandbox = settings.sandbox if changed else run.sandbox()
    if sandbox in ("auto", "docker", "ray"):
        check_engine(run.config["id"], run.name, sandbox)
    try:
        with watcher.step("opening the benchmark and its sandboxes"):
            parts = assemble.parts_of(settings.model_copy(update={"sandbox": sandbox}))
    except UserError as error:
        if not Path(settings.benchmark).is_absolute() or Path(settings.benchmark).exists():
            raise
        problem = f"{error.problem}; if it was moved, set benchmark to its new path"
        raise UserError(problem, argument=error.argument) from error
    if change := assemble.describe_grader_change(run, parts):
        watcher.confirm_grader(change)
    else:
        assemble.check_benchmark(run, parts)
    for root in run.tree.roots if changed else ():
        name = "the seed" if root == SEED else f"agent {root}"
        await rehearse(name, run.source(root), parts.engine, settings)
    return parts


async def check_models_again(run: Run, settings: Settings, watcher: Watcher) -> Sequence[Checked]:
    """Make one small real call to every model for a further session; one that a kill cuts off is counted later.

    Raises:
        UserError: a person must act.
        Infrastructure: a model does not answer now.
    """
    begin_checks(run.folder, worst_of_checks(settings))
    try:
        with watcher.step("checking the models"):
            checks = await check_models(settings, run.tree.model_facts.abilities)
    except UserError:
        # The check was refused, or none was made.
        end_checks(run.folder, counted=False)
        raise
    watcher.models_checked(settings, checks)
    return checks
