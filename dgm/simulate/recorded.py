"""A simulated search that is written down as an ordinary run, so that every command that reads a run reads it.

The loop, its controller and the log are those of a real search; only the worker is simulated. An agent's source is one
file with the agent's true nature. Recording a trial again continues the run of a killed session.
"""

import asyncio
import json
import platform
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dgm import __version__
from dgm.analysis.budgets import Reason
from dgm.archive.events import Recorded, RunStarted
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import ActionId, Agent, Born, CommitId, Entry, Snapshot
from dgm.errors import UserError
from dgm.policies.registry import open_policy
from dgm.search.loop import LoopHooks, Search
from dgm.search.run_controller import RunController
from dgm.simulate import PLAN, virtual
from dgm.simulate.families import OPERATORS
from dgm.simulate.policies import ORACLE, contender_settings
from dgm.simulate.trial import SEED_OPERATOR, Trial, budget_of, world_of
from dgm.simulate.virtual import SimulatedWorker
from dgm.simulate.world import Latent

FILE = "nature.json"
"""All the source of a simulated agent."""
VERSION = "5"
"""Of worlds and of trials; raised when equal trials have other results than before."""
NOTHING = "simulated"
"""Stands in the settings for a model, and in the configuration for a sandbox."""
_OVER = (Reason.GOAL.value, Reason.NOTHING_LEFT.value)


def open_recording(folder: Path, trial: Trial) -> Run:
    """Open the run in ``folder`` that records the trial, for writing; create it where there is none.

    Raises:
        UserError: something else is in the folder, or the trial cannot be recorded.
        ArchiveBusy: another process is writing the run.
        ArchiveCorrupt: the run is damaged.
    """
    if trial.policy == ORACLE:
        raise UserError(f"policy '{ORACLE}' knows its world, which no run records; record another policy")
    if trial.family == OPERATORS:
        raise UserError(
            f"family '{OPERATORS}' spends virtual time, which no run records; record a trial of another family"
        )
    plan = {**asdict(trial), "version": VERSION}
    try:
        exists = (folder / "run.json").exists()
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be created: {error.strerror}; choose another folder") from error
    if not exists:
        return Run.create(folder, _config(folder, trial, plan))
    run = Run.open(folder, write=True)
    if run.config.get(PLAN) != plan:
        run.close()
        what = "another trial, or one by another version" if PLAN in run.config else "a run that is not simulated"
        raise UserError(f"{folder}: holds {what}; choose another folder")
    return run


def record(run: Run, trial: Trial, on_event: Callable[[Recorded], None] = lambda _: None) -> None:
    """Perform the trial, or the rest of it, in a run from ``open_recording``.

    Raises:
        Infrastructure: the disk is full or failing.
    """
    if run.tree.stop_reason in _OVER:
        return
    world = world_of(trial)
    settings = _settings(trial)

    def store(latent: Latent, parents: Sequence[Agent]) -> CommitId:
        return run.repository.commit(_source(latent), [parent.commit for parent in parents])

    run.append(RunStarted(budget_of(trial), world.tasks, resumed=bool(run.tree.agents)))
    if not run.tree.agents:
        born = Born((), SEED_OPERATOR, store(world.root(), ()), "where the simulated search begins")
        run.append(run.birth(born, ActionId(0)))

    async def session() -> None:
        worker = SimulatedWorker(world, run.tree, asyncio.sleep, store)
        hooks = LoopHooks(on_event, clock=virtual.clock, open_watch=None)
        await Search(RunController(run, settings), open_policy(settings), worker, settings, hooks).go()

    virtual.run(session())


def _settings(trial: Trial) -> Settings:
    return Settings(
        benchmark=f"{NOTHING}:{trial.family}",
        model=NOTHING,
        workers=trial.workers,
        seed=trial.seed,
        policy=contender_settings(trial.policy).policy,
    )


def _config(folder: Path, trial: Trial, plan: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "id": uuid.uuid4().hex[:16],
        "name": folder.name,
        "created": time.time(),
        "settings": _settings(trial).model_dump(mode="json"),
        "sandbox": NOTHING,
        "versions": {"dgm": __version__, "python": platform.python_version(), "benchmark": plan["version"]},
        PLAN: plan,
    }


def _source(latent: Latent) -> Snapshot:
    nature = {
        "key": latent.key.hex(),
        "skills": latent.skills,
        "drift": latent.drift,
        "reserve": latent.reserve,
        "broken": latent.broken,
    }
    return {FILE: Entry(json.dumps(nature, indent=2).encode() + b"\n")}
