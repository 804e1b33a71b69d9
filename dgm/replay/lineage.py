"""Replay of one lineage: repeat its expansions from the seed on, and compare commit ids step by step."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dgm.analysis.lineage import Lineage
from dgm.archive.run import Run
from dgm.archive.verifying import check_descent
from dgm.domain import ActionId, Agent, AgentId, Born, CommitId, Outcome, Stillborn
from dgm.errors import ArchiveCorrupt, Infrastructure
from dgm.processes import StandstillWatch
from dgm.replay.findings import Divergence, Match, describe_differing_files, divergence_of_failure
from dgm.worker.worker import Worker


@dataclass(frozen=True, slots=True)
class StepAgain:
    """One agent of the lineage, made again."""

    agent: AgentId
    action: ActionId
    """0 for the seed: no action is performed, and its source is committed again."""
    match: Match
    commit: CommitId
    """The recorded commit."""
    again: CommitId | None
    """The new commit; None if no child was born."""
    divergence: Divergence | None
    """Set unless ``match`` is ``SAME``."""
    seconds: float


async def replay_lineage(
    run: Run,
    leaf: AgentId,
    workers: Mapping[ActionId, Worker],
    on_step: Callable[[StepAgain], None] = lambda _: None,
) -> list[StepAgain]:
    """Make every agent from the seed to ``leaf`` again; each step starts from the recorded parent.

    Args:
        run: the recorded run, which is only read.
        leaf: the last agent.
        workers: from ``open_worker(run, …)``, for the action that made each agent of the lineage.
        on_step: hears of each step when it is done.

    Raises:
        UserError: there is no such agent.
        ArchiveCorrupt: something in the run is damaged.
    """
    lineage = Lineage(run.tree, leaf)
    await asyncio.to_thread(check_descent, run, lineage.agents)
    steps = []
    for agent in lineage.agents:
        step = await _remake_agent(run, agent, workers[agent.action])
        on_step(step)
        steps.append(step)
    return steps


async def _remake_agent(run: Run, agent: Agent, worker: Worker) -> StepAgain:
    began = time.monotonic()
    outcome: Outcome | Infrastructure
    async with StandstillWatch() as watch:
        try:
            outcome = await _perform_step(run, agent, worker)
        except Infrastructure as error:
            outcome = error
        if not isinstance(outcome, Born):
            outcome = watch.find_standstill() or outcome
    again = outcome.commit if isinstance(outcome, Born) else None
    match, divergence = await asyncio.to_thread(_compare_step, run, agent, worker, outcome)
    return StepAgain(agent.id, agent.action, match, agent.commit, again, divergence, time.monotonic() - began)


async def _perform_step(run: Run, agent: Agent, worker: Worker) -> Outcome:
    if agent.action:
        starts = run.store.starts_of_action(agent.action)
        if not starts:
            raise ArchiveCorrupt(f"{run.folder / 'events.db'}: action {agent.action} was never started")
        return await worker.perform(agent.action, starts[-1][1])
    parents = [run.tree.agents[parent].commit for parent in agent.parents]
    source = await asyncio.to_thread(run.repository.source, agent.commit)
    commit = await asyncio.to_thread(worker.run.repository.commit, source, parents)
    return Born(agent.parents, agent.operator, commit, agent.rationale)


def _compare_step(
    run: Run, agent: Agent, worker: Worker, outcome: Outcome | Infrastructure
) -> tuple[Match, Divergence | None]:
    action = agent.action
    match outcome:
        case Infrastructure():
            found = divergence_of_failure(action, str(outcome))
            if found:
                return Match.DIFFERENT, found
            return Match.NOT_PERFORMED, Divergence(action, f"the infrastructure failed: {outcome}")
        case Born(commit=commit) if commit == agent.commit:
            return Match.SAME, None
        case Born(commit=commit):
            repository = worker.run.repository
            what = describe_differing_files(run.repository.source(agent.commit), repository.source(commit))
            return Match.DIFFERENT, Divergence(action, f"another commit: {what}")
        case Stillborn(stage=stage, reason=reason):
            return Match.DIFFERENT, Divergence(action, f"born then, stillborn now ({stage}): {reason}")
        case _:
            raise AssertionError("an expansion has no other outcome")
