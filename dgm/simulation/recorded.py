"""A simulated search that is recorded as an ordinary run, so that every command that reads a run reads it.

The loop, its controller and the log are those of a real search; only the worker is simulated. An agent's source is one
file with the agent's true nature. Recording a trial again continues the run of a killed session.
"""

import asyncio
import json
import platform
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from dgm import __version__
from dgm.analysis.budgets import Reason
from dgm.archive.events import Recorded, RunStarted
from dgm.archive.run import Run, RunKind
from dgm.config import Settings
from dgm.domain import ActionId, Agent, Born, CommitId, Entry
from dgm.errors import Infrastructure, UserError
from dgm.policies.curriculum import choose_tasks
from dgm.policies.registry import open_policy
from dgm.search.loop import LoopHooks, Search
from dgm.search.prepare import RunController
from dgm.simulation import virtual
from dgm.simulation.families import OPERATORS
from dgm.simulation.policies import ORACLE, contender_settings
from dgm.simulation.trial import SEED_OPERATOR, Trial, budget_of, world_of
from dgm.simulation.virtual import SimulatedWorker
from dgm.simulation.world import Latent

VERSION = "5"
"""Of worlds and of trials; raised when equal trials have other results than before."""


def record_trial(folder: Path, trial: Trial, on_event: Callable[[Recorded], None] = lambda _: None) -> None:
    """Perform the trial as the run in ``folder``, or the rest of it.

    Raises:
        UserError: something else is in the folder, or the trial cannot be recorded.
        ArchiveBusy: another process is writing the run.
        ArchiveCorrupt: the run is damaged.
        Infrastructure: the simulated infrastructure failed too often, or the disk is full.
    """
    if trial.policy == ORACLE or trial.family == OPERATORS:
        raise UserError(
            f"the policy '{ORACLE}' and the family '{OPERATORS}' depend on what no run records; record another trial",
            argument="record",
        )
    with _open(folder, trial) as run:
        if run.tree.stop_reason not in (Reason.GOAL.value, Reason.NOTHING_LEFT.value):
            virtual.run(_search(run, trial, on_event))
        if run.tree.stop_reason == Reason.OUTAGE.value:
            raise Infrastructure(
                f"{folder}: the simulated infrastructure failed too often; record the trial again to continue"
            )


def _open(folder: Path, trial: Trial) -> Run:
    plan = {**asdict(trial), "version": VERSION}
    try:
        exists = (folder / "run.json").exists()
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be created: {error.strerror}; choose another folder") from error
    if not exists:
        config = {
            "id": uuid.uuid4().hex[:16],
            "name": folder.name,
            "created": time.time(),
            "settings": _settings(trial).model_dump(mode="json"),
            "sandbox": "simulated",
            "versions": {"dgm": __version__, "python": platform.python_version(), "benchmark": VERSION},
            "kind": RunKind.SIMULATION,
            "plan": plan,
        }
        return Run.create(folder, config)
    run = Run.open(folder, write=True)
    if (run.kind, run.plan) != (RunKind.SIMULATION, plan):
        run.close()
        what = (
            "another trial, or one by another version"
            if run.kind is RunKind.SIMULATION
            else "a run that is not simulated"
        )
        raise UserError(f"{folder}: holds {what}; choose another folder")
    return run


async def _search(run: Run, trial: Trial, on_event: Callable[[Recorded], None]) -> None:
    world, settings = world_of(trial), _settings(trial)

    def store(latent: Latent, parents: Sequence[Agent]) -> CommitId:
        nature = {**asdict(latent), "key": latent.key.hex()}
        source = {"nature.json": Entry(json.dumps(nature, indent=2).encode() + b"\n")}
        return run.repository.commit(source, [parent.commit for parent in parents])

    run.append(RunStarted(budget_of(trial), world.tasks, resumed=bool(run.tree.agents)))
    if not run.tree.agents:
        born = Born((), SEED_OPERATOR, store(world.root(), ()), "where the simulated search begins")
        run.append(run.birth(born, ActionId(0)))
    worker = SimulatedWorker(world, run.tree, asyncio.sleep, store)
    changes = partial(choose_tasks, rule=settings.curriculum, seed=settings.seed)
    hooks = LoopHooks(on_event, clock=virtual.clock, change_tasks=changes, open_watch=None)
    await Search(RunController(run, settings), open_policy(settings), worker, settings, hooks).go()


def _settings(trial: Trial) -> Settings:
    return Settings(
        benchmark=f"simulated:{trial.family}",
        model="simulated",
        workers=trial.workers,
        seed=trial.seed,
        policy=contender_settings(trial.policy).policy,
        curriculum=contender_settings(trial.policy).curriculum,
    )
