"""The one path on which ``dgm run``, ``dgm resume`` and ``dgm.evolve`` begin and continue a search.

A session is prepared before anything is written or paid for: settings, sandboxes, benchmark, the seed's own
start, and one small call to each model. A ``Watcher`` informs and asks the caller on the way.
"""

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dgm import assemble
from dgm.analysis.budgets import Ending
from dgm.archive.begun_checks import begin_checks, end_checks
from dgm.archive.events import Event, Recorded
from dgm.archive.finding import archive_folders
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.consents import remember_own
from dgm.domain import SEED, Budget
from dgm.errors import Infrastructure, UserError
from dgm.evaluation.evaluating import PLAN as EVALUATION
from dgm.meta.seeds import read_seed, seed_of
from dgm.models.auto import Offer, settle_auto
from dgm.models.choose import AUTO, all_names
from dgm.models.reach import list_reach
from dgm.paths import NOT_RUNS
from dgm.policies.registry import with_recommendation
from dgm.protocols import Checked
from dgm.sandboxes.engine_address import check_engine
from dgm.search.endless import check_budget_ends_run
from dgm.search.loop import Search
from dgm.search.mending import change_event, withdraw_refused_verdicts
from dgm.search.model_checks import check_models, note_checks, worst_of_checks
from dgm.search.run_settings import require_consent
from dgm.search.stopping import perform_until_stopped
from dgm.simulation import PLAN as SIMULATION
from dgm.worker.rehearsal import rehearse

log = logging.getLogger(__name__)

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class Watcher:
    """The callbacks by which a session informs and asks its caller; by default silent and unwilling to spend."""

    def may_use(self, offer: Offer) -> bool:
        """Return whether ``auto`` may take a model that costs money.

        Raises:
            UserError: the answer is unknown, and nobody can be asked.
        """
        raise UserError(
            f"{offer.key_variable} is set: name the model {offer.model} to use it (this costs money)"
        )

    def model_chosen(self, why: str) -> None:
        """Hear which model ``auto`` stands for, and why."""

    def confirm(self, settings: Settings, budget: Budget, spent_usd: float) -> None:
        """Agree to what the session may cost.

        Raises:
            UserError: the caller does not agree.
        """

    def confirm_grader(self, change: str) -> None:
        """Agree to go on under another grader, which ``change`` tells of.

        Raises:
            UserError: the caller does not agree.
        """
        log.warning(change)

    def models_checked(self, settings: Settings, checks: Sequence[Checked]) -> None:
        """Hear what the checks of the models cost and found."""

    def model_away(self, error: Infrastructure) -> None:
        """Hear that a model does not answer now, and that the search waits for it."""

    def withdrawn(self, evaluations: int) -> None:
        """Hear how many verdicts are withdrawn, so that they are graded anew."""

    def begins(self, search: Search) -> None:
        """Hear that a search is about to continue; from now on it can be asked to stop."""

    def event(self, recorded: Recorded) -> None:
        """Hear of an event that is on disk."""


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
    parts = assemble.parts_of(settings)
    settings = settings.model_copy(update={"policy": with_recommendation(settings.policy)})
    assemble.check_settings(settings)
    assemble.check_goals(settings.budget.budget(), settings, parts)
    settings = name_models(settings, watcher)
    check_budget_ends_run(settings.budget.budget(), settings)
    watcher.confirm(settings, settings.budget.budget(), 0.0)
    name = seed_of(settings)
    rehearsal = await rehearse(name, read_seed(name), parts.engine, settings)
    settings = settings.model_copy(update={"limits": rehearsal.limits})
    checks = await check_models(settings)
    watcher.models_checked(settings, checks)
    return PreparedSession(settings, parts, checks)


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
            f"--name '{chosen}': a run's name is made of letters, digits, '.', '_' and '-' (not {', '.join(NOT_RUNS)})"
        )
    folder = next(archive_folders()) / chosen
    if folder.exists():
        raise UserError(
            f"{folder}: already exists; go on with 'dgm resume {folder.name}' or choose another --name"
        )
    return folder


def change_budget(before: Budget, limits: Mapping[str, float | None]) -> Budget:
    """Return a budget with some of its limits replaced.

    Args:
        before: the budget of the last session.
        limits: name as in ``BudgetSettings`` → new limit; None keeps the old one.

    Raises:
        UserError: a limit is not above 0, or ``until_score`` is not below 1.
    """
    given: dict[str, Any] = {name: limit for name, limit in limits.items() if limit is not None}
    for name, limit in given.items():
        if limit <= 0:
            raise UserError(f"--max-{name} {limit}: a budget must be above 0")
    if given.get("until_score", 0) >= 1:
        raise UserError(f"--until-score {given['until_score']}: a score must be below 1")
    if "hours" in given:
        given["seconds"] = given.pop("hours") * 3600
    if "until_score" in given:
        given["score"] = given.pop("until_score")
    return replace(before, **given)


def create(folder: Path, prepared: PreparedSession) -> Run:
    """Create the run, open to write, with its seed as agent 0 and the costs of its models' checks.

    Raises:
        UserError: the folder exists, or an error of ``assemble.create``.
    """
    # First, so that a run whose creation is cut off is known to be this user's.
    remember_own(list_reach(prepared.settings))
    made = assemble.create(folder, prepared.settings, prepared.parts)
    note_checks(made, prepared.settings, prepared.checks)
    return made


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
    event = change_event(assemble.settings_of(run), settings)
    check_budget_ends_run(budget, settings)
    parts = await _open_parts_again(
        run, settings, watcher, changed="sandbox" in event.settings if event else False
    )
    assemble.check_goals(budget, settings, parts)
    watcher.confirm(settings, budget, run.tree.spend.usd)
    checks = await _check_again(run, settings, watcher)
    withdrawn: Sequence[Event] = withdraw_refused_verdicts(run) if regrade else ()
    assemble.record_resume(run, budget, parts, [*([event] if event else ()), *withdrawn])
    note_checks(run, settings, checks)
    if regrade:
        watcher.withdrawn(len(withdrawn))
    return PreparedSession(settings, parts, checks)


async def perform(run: Run, prepared: PreparedSession, watcher: Watcher) -> Ending:
    """Search until a budget is spent, nothing is left, or a stop is asked for.

    Raises:
        asyncio.CancelledError: stopped at once; nothing recorded is lost.
    """

    async def work(begins: Callable[[Search], None]) -> Ending:
        async with assemble.search(run, prepared.settings, prepared.parts, watcher.event) as search:
            begins(search)
            watcher.begins(search)
            return await search.go()

    return await perform_until_stopped(run, work)


def check_is_search(run: Run) -> None:
    """Make sure that a run can be continued as a search.

    Raises:
        UserError: the run is an evaluation or simulated.
    """
    if EVALUATION in run.config:
        raise UserError(
            f"{run.name}: is an evaluation, not a search; to go on, repeat its dgm evaluate command"
        )
    if SIMULATION in run.config:
        raise UserError(f"{run.name}: is simulated; to go on, repeat its dgm simulate --record command")


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
        parts = assemble.parts_of(settings.model_copy(update={"sandbox": sandbox}))
    except UserError as error:
        if not Path(settings.benchmark).is_absolute() or Path(settings.benchmark).exists():
            raise
        hint = f"if it was moved, say where it is: dgm resume {run.name} --benchmark PATH"
        raise UserError(f"{error}; {hint}") from error
    if change := assemble.describe_grader_change(run, parts):
        watcher.confirm_grader(change)
    else:
        assemble.check_benchmark(run, parts)
    if changed and run.tree.agents:
        await rehearse("the seed", run.source(SEED), parts.engine, settings)
    return parts


async def _check_again(run: Run, settings: Settings, watcher: Watcher) -> Sequence[Checked]:
    """Check the models: raise at once for a wrong key; leave waiting for an absent provider to the search."""
    begin_checks(run.folder, worst_of_checks(settings))
    try:
        checks = await check_models(settings, run.tree.model_facts.abilities)
    except UserError:
        # The check was refused, or none was made.
        end_checks(run.folder, counted=False)
        raise
    except Infrastructure as error:
        watcher.model_away(error)
        return ()
    watcher.models_checked(settings, checks)
    return checks
