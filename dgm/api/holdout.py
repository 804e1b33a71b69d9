"""Holdout evaluations: the seed and the best agent work on tasks that the search never saw.

With a control of equal spend, the seed then gets as many attempts as the spend of the search would have bought.
"""

import contextlib
import platform
from collections.abc import Callable, Sequence

from dgm import assemble
from dgm.analysis.agents import best_of
from dgm.analysis.budgets import Ending, Reason
from dgm.api.watcher import Watcher
from dgm.archive.events import Control, Recorded, RunStarted
from dgm.archive.run import Run, RunKind
from dgm.config import Settings
from dgm.domain import SEED, Agent, Budget, Split, TaskId
from dgm.errors import UserError
from dgm.evaluation.control import (
    FOLDER,
    ControlCost,
    HoldoutSchedule,
    count_evaluations,
    enter_control,
    estimate_cost,
    name_candidates,
    plan_control,
    read_attempts,
)
from dgm.evaluation.schedule import EvaluationProgress, enter_agent, find_entered
from dgm.models.choose import BUILTIN, names_by_role
from dgm.render import fmt
from dgm.search.loop import perform_until_stopped
from dgm.search.start import check_models, note_checks, require_consent, settings_of
from dgm.simulation import check_performed
from dgm.views.holdout import holdout_exists


async def perform_holdout(
    run: Run,
    watcher: Watcher,
    *,
    max_usd: float | None,
    control_attempts: int | None,
    workers: int | None,
    confirm: Callable[[str], bool],
) -> Ending | None:
    """Perform the holdout evaluations that are missing; if none is, call no model and return None.

    Args:
        run: the search, open to write.
        watcher: is informed.
        max_usd: limit on the cost, earlier sessions included; None: the rest of the run's own limit.
        control_attempts: maximum attempts of the control at each task; None: without a control.
        workers: parallel evaluations; None: the run's.
        confirm: is asked with the price of the control.

    Raises:
        UserError: the benchmark has no holdout tasks or is not here, the control would show nothing, or its price is
            not confirmed.
        ConsentNeeded: the run may be a stranger's, and names addresses of its own.
        Infrastructure: a model does not answer now.
    """
    check_performed(run)
    settings = settings_of(run)
    if workers is not None:
        settings = settings.model_copy(update={"workers": workers})
    control = choose_control(run, settings, control_attempts) if control_attempts else None
    parts = assemble.parts_of(settings.model_copy(update={"sandbox": run.config["sandbox"]}))
    tasks = [task.id for task in parts.benchmark.tasks(Split.HOLDOUT)]
    if not tasks:
        raise UserError(
            f"benchmark {parts.benchmark.name} has no holdout tasks; evaluate agents on another split"
        )
    agents = [run.tree.agents[agent] for agent in dict.fromkeys((SEED, best_of(run)))]
    spent, cost = 0.0, None
    with contextlib.ExitStack() as stack:
        earlier = stack.enter_context(Run.open(run.folder / FOLDER)) if holdout_exists(run) else None
        if earlier:
            if _is_complete(earlier, agents, tasks, control):
                return None
            spent = earlier.tree.spend.usd
        if control:
            cost = estimate_cost(run, earlier, control, len(tasks))
    limit = run.tree.budget.usd
    usd = max_usd if max_usd is not None or limit is None else limit - run.tree.spend.usd
    if usd is not None and usd <= spent:
        name = "their limit" if max_usd is not None else "the rest of the run's limit"
        spent_text = f"{name}, {fmt.money(max(0.0, usd))}, is spent (they have cost {fmt.money(spent)})"
        return Ending(Reason.LIMIT, spent_text)
    require_consent(run, settings)
    if cost and cost.attempts:
        price = describe_cost(cost, settings.workers)
        if not confirm(price):
            raise UserError(f"{price}: not confirmed, so nothing was performed or spent", argument="control")
    checks = await check_models(settings, run.tree.model_facts.abilities)
    watcher.models_checked(settings, checks)
    with open_holdout(run, settings, parts) as holdout:
        begin_holdout(holdout, run, agents, usd, parts, control)
        note_checks(holdout, settings, checks)
        names = name_candidates(holdout, run, agents[-1])
        progress = EvaluationProgress.read(holdout)
        expected = cost.attempts if cost else 0

        def on_event(recorded: Recorded) -> None:
            progress.observe(recorded)
            watcher.event(recorded)

        with watcher.show(
            holdout, None, names, lambda: count_evaluations(holdout, progress, names, expected)
        ):
            opening = assemble.search(holdout, settings, parts, on_event, HoldoutSchedule())
            return await perform_until_stopped(holdout, opening, watcher.begins)


def open_holdout(run: Run, settings: Settings, parts: assemble.RunParts) -> Run:
    """Return a run's holdout evaluation, open to write; create it if there is none."""
    folder = run.folder / FOLDER
    assemble.check_benchmark(run, parts)
    if not (folder / "run.json").exists():
        return Run.create(folder, {**assemble.record_of(folder, settings, parts), "kind": RunKind.HOLDOUT})
    return Run.open(folder, write=True)


def begin_holdout(
    holdout: Run,
    run: Run,
    agents: Sequence[Agent],
    usd: float | None,
    parts: assemble.RunParts,
    control: Control | None = None,
) -> None:
    """Enter agents of a run into its holdout evaluation.

    Args:
        holdout: from ``open_holdout``.
        run: the search.
        agents: the seed first.
        usd: limit on the cost over all its sessions, in USD.
        parts: of the run.
        control: from ``choose_control``; None: this session makes no attempts for the control of equal spend.
    """
    tasks = tuple(task.id for task in parts.benchmark.tasks(Split.HOLDOUT))
    resumed = bool(holdout.tree.agents)
    holdout.append(
        RunStarted(Budget(usd=usd), tasks, resumed=resumed, control=control, kernel=platform.release())
    )
    for agent in agents:
        enter_agent(holdout, run, agent)
    if control is not None:
        enter_control(holdout, run)


def choose_control(run: Run, settings: Settings, attempts: int) -> Control | None:
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
    return None if best_of(run) == SEED else plan_control(run, attempts)


def describe_cost(cost: ControlCost, workers: int) -> str:
    """Return what a control costs at most, in one clause."""
    return (
        f"the control gives the seed up to {fmt.count(cost.attempts, 'further attempt')}: at most about "
        f"{fmt.money(cost.usd)}, {fmt.short_number(cost.tokens)} tokens and {fmt.duration(cost.seconds / workers)} "
        f"with {fmt.count(workers, 'worker')}"
    )


def _is_complete(
    holdout: Run, agents: Sequence[Agent], tasks: Sequence[TaskId], control: Control | None
) -> bool:
    entered = [find_entered(holdout, agent.commit) for agent in agents]
    if not all(who is not None and all(holdout.tree.verdict(who, task) for task in tasks) for who in entered):
        return False
    # With all first verdicts the number of further attempts is known.
    return control is None or read_attempts(holdout, control).missing == 0
