"""Preparation of an examination of a run's best agent on the holdout tasks."""

from collections.abc import Sequence
from dataclasses import dataclass

from dgm import assemble
from dgm.analysis.best import best_of
from dgm.analysis.budgets import Ending, Reason
from dgm.archive.events import Control
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import SEED, Agent, Split
from dgm.errors import UserError
from dgm.evaluation.control import ControlCost, control_of, count_missing_attempts, estimate_cost
from dgm.evaluation.exam import FOLDER, find_candidate
from dgm.models.choose import BUILTIN, names_by_role
from dgm.protocols import Checked
from dgm.search.model_checks import note_checks
from dgm.search.run_settings import require_consent
from dgm.show.words import usd_text


@dataclass(frozen=True, slots=True)
class NeededExam:
    """An examination that has something left to do."""

    agents: Sequence[Agent]
    """The seed, and the best agent if that is another one."""
    parts: assemble.RunParts
    usd: float | None
    """Limit on the cost over all its sessions, in USD; None: no limit."""
    control: Control | None
    control_cost: ControlCost | None
    """About what the control still costs at most; None without one."""


def plan_control(run: Run, settings: Settings, attempts: int) -> Control | None:
    """Return the control of a search; None where the best agent is the seed, so that nothing can be compared with it.

    Args:
        run: the search.
        settings: of the run.
        attempts: at each task, at most.

    Raises:
        UserError: the model gives equal answers to equal requests.
    """
    model = names_by_role(settings)["solve"]
    if model in BUILTIN:
        raise UserError(
            f"the control would show nothing: the {model} model gives equal answers to equal requests, so the seed's "
            "further attempts would repeat its first one; leave the control out"
        )
    return None if best_of(run) == SEED else control_of(run, attempts)


def find_needed_exam(
    run: Run, settings: Settings, max_usd: float | None, control: Control | None
) -> NeededExam | Ending | None:
    """Return the examination still needed, an ending if there is no money for it, or None if nothing is missing.

    Args:
        run: the search.
        settings: of the run.
        max_usd: limit on the examination's cost in USD, earlier sessions included; None: the rest of the run's
            own limit.
        control: the control of equal spend; None: without one.

    Raises:
        ConsentNeeded: the run may be a stranger's, and names addresses of its own.
        UserError: the benchmark has no holdout tasks, or is not here.
    """
    parts = assemble.parts_of(settings.model_copy(update={"sandbox": run.config["sandbox"]}))
    if not parts.benchmark.tasks(Split.HOLDOUT):
        raise UserError(
            f"benchmark {parts.benchmark.name} has no holdout tasks; dgm evaluate asks other splits"
        )
    both = (run.tree.agents[0], run.tree.agents[best_of(run)])
    agents = list({agent.id: agent for agent in both}.values())
    tasks = len(parts.benchmark.tasks(Split.HOLDOUT))
    spent = 0.0
    if (run.folder / FOLDER / "run.json").exists():
        with Run.open(run.folder / FOLDER) as exam:
            if _is_complete(exam, agents, parts, control):
                return None
            spent = exam.tree.spend.usd
            cost = estimate_cost(run, exam, control, tasks) if control else None
    else:
        cost = estimate_cost(run, None, control, tasks) if control else None
    usd = _affordable_usd(run, max_usd)
    if usd is not None and usd <= spent:
        return Ending(Reason.LIMIT, _describe_used_up(run, max_usd, spent))
    require_consent(run, settings)
    return NeededExam(agents, parts, usd, control, cost)


def begin_needed_exam(
    exam: Run, run: Run, needed: NeededExam, settings: Settings, checks: Sequence[Checked]
) -> None:
    """Enter the agents into the examination, and record the costs of the models' checks."""
    assemble.begin_exam(exam, run, needed.agents, needed.usd, needed.parts, needed.control)
    note_checks(exam, settings, checks)


def _affordable_usd(run: Run, max_usd: float | None) -> float | None:
    limit = run.tree.budget.usd
    return max_usd if max_usd is not None or limit is None else limit - run.tree.spend.usd


def _describe_used_up(run: Run, max_usd: float | None, spent: float) -> str:
    if max_usd is not None:
        return f"they have cost {spent:.4f} USD already, of {usd_text(max_usd)} that they may"
    return (
        f"the run's limit of {usd_text(run.tree.budget.usd or 0)} USD leaves nothing for them "
        f"({run.tree.spend.usd:.4f} are spent on the search, {spent:.4f} on them)"
    )


def _is_complete(
    exam: Run, agents: Sequence[Agent], parts: assemble.RunParts, control: Control | None
) -> bool:
    tasks = [task.id for task in parts.benchmark.tasks(Split.HOLDOUT)]
    entered = [find_candidate(exam, agent) for agent in agents]
    pairs = all(
        identity is not None and all(exam.tree.verdict(identity, task) for task in tasks)
        for identity in entered
    )
    return pairs and (control is None or count_missing_attempts(exam, control) == 0)
