"""Replays from the record alone: no key, no model, nothing written into the run."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack

from dgm import assemble
from dgm.analysis.lineage import Lineage
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, AgentId, TaskId
from dgm.errors import Hint, UserError
from dgm.evaluation.control import Examination
from dgm.evaluation.evaluating import PLAN as EVALUATION
from dgm.evaluation.exam import OPERATOR
from dgm.policies.registry import open_policy
from dgm.protocols import Policy
from dgm.replay.context import ReplayContext, open_worker
from dgm.replay.decisions import Decisions, replay_decisions
from dgm.replay.evaluations import EvaluationAgain, How, find_graded, replay_evaluations
from dgm.replay.lineage import StepAgain, replay_lineage
from dgm.replay.live_steps import PairsPolicy
from dgm.sandboxes.choose import open_kind
from dgm.search.run_settings import current_settings_at, group_by_settings
from dgm.simulation import check_performed
from dgm.worker.session import call_limits
from dgm.worker.worker import Worker

PLAN = "replay"
"""Key of a live run's configuration that says what it repeats."""


def decisions(run: Run, policy: Policy | None = None, seed: int | None = None) -> Decisions:
    """Ask the policy every question of the run again, on the tree of that moment; use no sandbox and no model.

    Args:
        run: open to read; may still be written by another process.
        policy: a fresh one that is asked instead of the run's own.
        seed: of the random streams, instead of the run's own.

    Raises:
        UserError: the run's policy is a plug-in that is not installed.
        ArchiveCorrupt: an event cannot be read, or cannot follow what came before.
    """
    settings = assemble.settings_of(run)
    if policy is None:
        assemble.warn_changed_objects(run)
    if seed is not None:
        settings = settings.model_copy(update={"seed": seed})
    needs = assemble.needs_of(settings)
    return replay_decisions(run, policy or _own_policy(run, settings), settings, needs)


async def lineage(
    run: Run,
    agent: AgentId,
    sandbox: str | None = None,
    on_step: Callable[[StepAgain], None] = lambda _: None,
) -> Sequence[StepAgain]:
    """Repeat every expansion from the seed to ``agent`` on recorded replies, and compare commit ids.

    Each step starts from the recorded parent, so that one divergence does not hide later ones.

    Args:
        run: open to read.
        agent: the last of the lineage.
        sandbox: the name of an engine, or ``auto``; default: as in the run, or ``auto`` if that is not
            available here.
        on_step: hears of each step when it is done.

    Raises:
        UserError: no such agent, no sandbox, the benchmark has changed since, or the run is simulated.
        ArchiveCorrupt: a trace, a commit or an event is damaged; the message names it.
        Infrastructure: the sandboxes' engine failed.
    """
    _check_search(run)
    actions = [each.action for each in Lineage(run.tree, agent).agents]
    async with AsyncExitStack() as opened:
        workers = {
            action: worker
            for until, some in group_by_settings(run, actions)
            for worker in [await opened.enter_async_context(_open_worker_at(run, until, sandbox))]
            for action in some
        }
        return await replay_lineage(run, agent, workers, on_step)


async def evaluations(
    run: Run,
    agents: Collection[AgentId] | None = None,
    task: TaskId | None = None,
    how: How | None = None,
    sandbox: str | None = None,
) -> Sequence[EvaluationAgain]:
    """Grade recorded patches again, or let the agents work again on recorded replies, in fresh sandboxes.

    Args:
        run: open to read.
        agents: whose evaluations; None for all.
        task: only of this task; None for all.
        how: grade or perform, and how many at once; default: grade, one at once.
        sandbox: as for ``lineage``.

    Raises:
        UserError: an error of ``lineage``, or there is no such evaluation.
        ArchiveCorrupt: as for ``lineage``.
        Infrastructure: as for ``lineage``.
    """
    chosen = dict(find_graded(run, agents, task))
    found: dict[ActionId, EvaluationAgain] = {}
    for until, some in group_by_settings(run, chosen):
        async with _open_worker_at(run, until, sandbox) as worker:
            again = await replay_evaluations(
                run, [(action, chosen[action]) for action in some], worker, how or How()
            )
        found |= zip(some, again, strict=True)
    return [found[action] for action in chosen]


def _open_worker_at(run: Run, until: int, sandbox: str | None) -> AbstractAsyncContextManager[Worker]:
    settings = current_settings_at(run, until)
    return open_worker(
        run, settings, make_replay_context(run, settings, sandbox or choose_sandbox(run, until))
    )


def make_replay_context(run: Run, settings: Settings, sandbox: str | None = None) -> ReplayContext:
    """Return the parts with which things of a run are repeated.

    Raises:
        UserError: no sandbox or no such benchmark here, the benchmark has changed since, or the run is
            simulated.
    """
    check_performed(run)
    assemble.warn_changed_objects(run)
    parts = assemble.parts_of(settings.model_copy(update={"sandbox": sandbox or choose_sandbox(run)}))
    assemble.check_benchmark(run, parts)
    return ReplayContext(
        engine=parts.engine,
        benchmark=parts.benchmark,
        operators=assemble.operators_of(run, settings),
        limits=call_limits(settings.limits),
    )


def choose_sandbox(run: Run, until: int | None = None) -> str:
    """Return the run's own kind of sandbox (at event ``until``), or ``auto`` if that is not available here."""
    kind = run.sandbox(until)
    if kind == "auto":
        return "auto"
    try:
        open_kind(kind)
    except UserError:
        return "auto"
    return kind


def _own_policy(run: Run, settings: Settings) -> Policy:
    examination = any(agent.operator == OPERATOR for agent in run.tree.agents[:1])
    _check_search(run)
    if EVALUATION in run.config:
        raise UserError(
            f"{run.name}: an evaluation: no policy decided anything",
            hint=Hint("to grade its patches again", "replay", (str(run.folder),), {"what": "evaluations"}),
        )
    plan = run.config.get(PLAN)
    if plan:
        entered = {agent.rationale: agent.id for agent in run.tree.agents}
        return PairsPolicy(
            [(entered[plan["commits"][str(agent)]], TaskId(task)) for agent, task in plan["pairs"]]
        )
    return Examination() if examination else open_policy(settings, assemble.needs_of(settings))


def _check_search(run: Run) -> None:
    """Refuse a lineage that was repeated live; it has neither decisions nor evidence of its own.

    Raises:
        UserError: the run holds such a lineage.
    """
    if run.config.get(PLAN, {}).get("what") == "lineage":
        raise UserError(
            f"{run.name}: holds a lineage that was made again live, from another run's evidence; replay that run"
        )
