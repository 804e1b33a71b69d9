"""Suites calibrated from a program (``dgm benchmark calibrate``)."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from dgm.api.arguments import assignments_of, check_amount, model_of, path_of
from dgm.benchmarks.calibration import MOST_ATTEMPTS
from dgm.blocking import OnEvent, ProgramWatcher, block
from dgm.errors import UserError
from dgm.models.scripted import Script
from dgm.sandboxes.engine_address import use_engine
from dgm.sessions import evaluation
from dgm.sessions.calibration import CalibratedSuite, find_suite, keep_calibration, make_calibration

__all__ = ["CalibrateArguments", "CalibratedSuite", "calibrate_suite"]


class CalibrateArguments(TypedDict, total=False):
    """Arguments of ``calibrate_suite``; each may be left out."""

    attempts: int
    """Times that each task is tried, from 1 to 100; 3 unless it is given."""
    tasks: Sequence[str]
    """Only these tasks."""
    model: str | Script | None
    """The model that the agent works with; ``auto`` unless it is given."""
    max_usd: float | None
    """Limit in USD, earlier sessions included; None: the last one given, or none."""
    workers: int | None
    """Tasks at once, from 1 to 4,096."""
    sandbox: str | None
    """``auto`` or the name of an engine."""
    engine: str | Sequence[str] | None
    """Address of the Docker engine, such as ``ssh://user@host``, or several; else as the environment says."""
    into: str | Path | None
    """Folder to record the attempts in; one in the archive unless it is given."""
    settings: Mapping[str, Any] | None
    """``models.*``, ``providers.*``, ``limits.*``, ``benchmarks.*`` or ``grading.*``."""
    allow_paid: bool
    """If true, ``model="auto"`` may choose a model that costs money."""


def calibrate_suite(
    name: str | Path,
    agent: str | Path = "plain",
    *,
    on_event: OnEvent | None = None,
    **given: Unpack[CalibrateArguments],
) -> CalibratedSuite:
    """Let an agent try every task of a suite several times, and note in the suite how often it solved each; blocks.

    The same call goes on where it ended and pays for nothing twice.

    Args:
        name: a suite's name or folder, which must not be dgm's own.
        agent: name of a shipped agent, a folder, or a git repository.
        on_event: is called with each event of the evaluation, model calls left out, once it is on disk.
        given: see ``CalibrateArguments``.

    Raises:
        UserError: what is wrong, before anything is spent.
        ArchiveBusy: another process is writing this evaluation.
        Infrastructure: a sandbox or a model failed before the first task.
    """
    return block(lambda session: _calibrate(session, str(name), str(agent), given), on_event)


async def _calibrate(
    session: ProgramWatcher, name: str, agent: str, given: CalibrateArguments
) -> CalibratedSuite:
    attempts, max_usd = given.get("attempts", 3), given.get("max_usd")
    session.allow_paid = given.get("allow_paid", False)
    check_amount("max_usd", max_usd)
    if not 1 <= attempts <= MOST_ATTEMPTS:
        raise UserError(f"attempts {attempts}: must be from 1 to {MOST_ATTEMPTS}")
    folder = find_suite(name)
    chosen = evaluation.EvaluationChoice(
        tasks=given.get("tasks", ()),
        attempts=attempts,
        model=model_of(given.get("model")),
        max_usd=max_usd,
        workers=given.get("workers"),
        sandbox=given.get("sandbox"),
        into=path_of(given.get("into")),
        assignments=assignments_of(given.get("settings")),
    )
    with use_engine(given.get("engine")):
        request = make_calibration(folder, agent, chosen, session)
        prepared = await evaluation.prepare(request, session)
        with prepared.made:
            found = prepared.report(await prepared.perform(session))
    return keep_calibration(folder, found)
