"""Holdout evaluations: the seed and the best agent work on tasks that the search never saw.

With a control of equal spend, the seed then gets as many attempts as the spend of the search would have bought.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm import assemble
from dgm.analysis.best import best_of
from dgm.analysis.budgets import Ending, Reason
from dgm.api.watcher import Watcher
from dgm.archive.events import Control, Recorded
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import SEED, Agent, Split
from dgm.errors import UserError
from dgm.evaluation.control import (
    ControlCost,
    ExamProgress,
    control_of,
    count_missing_attempts,
    estimate_cost,
    name_candidates,
)
from dgm.evaluation.exam import FOLDER, find_candidate
from dgm.models.choose import BUILTIN, names_by_role
from dgm.render import fmt
from dgm.render.report_text import short_number
from dgm.search.model_checks import check_models, note_checks
from dgm.search.run_settings import require_consent
from dgm.simulate import check_performed


@dataclass(frozen=True, slots=True)
class MissingWork:
    """Holdout evaluations that are still to be done."""

    agents: Sequence[Agent]
    """The seed, and the best agent if that is another one."""
    parts: assemble.RunParts
    usd: float | None
    """Limit on the cost over all sessions; None: no limit."""
    control: Control | None
    control_cost: ControlCost | None
    """Most that the control still costs; None without one."""


async def perform_holdout(
    run: Run,
    watcher: Watcher,
    *,
    max_usd: float | None,
    control_attempts: int | None,
    workers: int | None,
    yes: bool,
) -> Ending | None:
    """Perform the holdout evaluations that are missing; if none is, call no model and return None.

    Args:
        run: the search, open to write.
        watcher: is informed, and asked for the control's price.
        max_usd: limit on the cost, earlier sessions included; None: the rest of the run's own limit.
        control_attempts: maximum attempts of the control at each task; None: without a control.
        workers: parallel evaluations; None: the run's.
        yes: whether the control needs no further confirmation.

    Raises:
        UserError: the benchmark has no holdout tasks or is not here, the control would show nothing, or its price is
            not confirmed.
        ConsentNeeded: the run may be a stranger's, and names addresses of its own.
        Infrastructure: a model does not answer now.
    """
    check_performed(run)
    settings = assemble.settings_of(run)
    if workers is not None:
        settings = settings.model_copy(update={"workers": workers})
    control = plan_control(run, settings, control_attempts) if control_attempts else None
    work = find_missing_work(run, settings, max_usd, control)
    if work is None or isinstance(work, Ending):
        return work
    if work.control_cost and work.control_cost.attempts and not yes:
        watcher.confirm_price(describe_cost(work.control_cost, settings.workers))
    checks = await check_models(settings, run.tree.model_facts.abilities)
    watcher.models_checked(settings, checks)
    with assemble.open_exam(run, settings, work.parts) as exam:
        assemble.begin_exam(exam, run, work.agents, work.usd, work.parts, work.control)
        note_checks(exam, settings, checks)
        names = name_candidates(exam, run, work.agents[-1])
        progress = ExamProgress(exam, names, work.control_cost.attempts if work.control_cost else 0)

        def on_event(recorded: Recorded) -> None:
            progress.observe(recorded)
            watcher.event(recorded)

        with watcher.show(exam, None, names, progress.counts):
            return await assemble.examine(exam, settings, work.parts, on_event, begins=watcher.begins)


def plan_control(run: Run, settings: Settings, attempts: int) -> Control | None:
    """Return the control of a search; None if the best agent is the seed, so that there is nothing to compare.

    Raises:
        UserError: the model gives equal answers to equal requests.
    """
    model = names_by_role(settings)["solve"]
    if model in BUILTIN:
        raise UserError(
            f"the {model} model gives equal answers to equal requests, so the seed's further attempts would repeat its "
            "first one and show nothing; leave the control out",
            argument="control",
        )
    return None if best_of(run) == SEED else control_of(run, attempts)


def find_missing_work(
    run: Run, settings: Settings, max_usd: float | None, control: Control | None
) -> MissingWork | Ending | None:
    """Return the evaluations still to be done, an ending if there is no money for them, or None if nothing is missing.

    Arguments and errors are those of ``perform_holdout``.
    """
    parts = assemble.parts_of(settings.model_copy(update={"sandbox": run.config["sandbox"]}))
    tasks = [task.id for task in parts.benchmark.tasks(Split.HOLDOUT)]
    if not tasks:
        raise UserError(
            f"benchmark {parts.benchmark.name} has no holdout tasks; evaluate agents on another split instead"
        )
    both = (run.tree.agents[0], run.tree.agents[best_of(run)])
    agents = list({agent.id: agent for agent in both}.values())
    spent, cost = 0.0, None
    if (run.folder / FOLDER / "run.json").exists():
        with Run.open(run.folder / FOLDER) as exam:
            entered = [find_candidate(exam, agent) for agent in agents]
            complete = all(
                who is not None and all(exam.tree.verdict(who, task) for task in tasks) for who in entered
            )
            if complete and (control is None or count_missing_attempts(exam, control) == 0):
                return None
            spent = exam.tree.spend.usd
            cost = estimate_cost(run, exam, control, len(tasks)) if control else None
    elif control:
        cost = estimate_cost(run, None, control, len(tasks))
    limit = run.tree.budget.usd
    usd = max_usd if max_usd is not None or limit is None else limit - run.tree.spend.usd
    if usd is not None and usd <= spent:
        return Ending(Reason.LIMIT, _describe_used_up(run, max_usd, spent))
    require_consent(run, settings)
    return MissingWork(agents, parts, usd, control, cost)


def describe_cost(cost: ControlCost, workers: int) -> str:
    """Return what a control costs at most, in one clause."""
    return (
        f"the control gives the seed up to {fmt.count(cost.attempts, 'further attempt')}: at most about "
        f"{fmt.money(cost.usd)}, {short_number(cost.tokens)} tokens and {fmt.duration(cost.seconds / workers)} with "
        f"{fmt.count(workers, 'worker')}"
    )


def _describe_used_up(run: Run, max_usd: float | None, spent: float) -> str:
    if max_usd is not None:
        return f"they have cost {fmt.money(spent)} of {fmt.money(max_usd)} already"
    return (
        f"the run's limit of {fmt.money(run.tree.budget.usd or 0)} leaves nothing for them "
        f"({fmt.money(run.tree.spend.usd)} are spent on the search, {fmt.money(spent)} on them)"
    )
