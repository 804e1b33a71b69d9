"""A study: every policy in every world, so that all comparisons are paired; performed on all cores, saved as CSV."""

import csv
import hashlib
import multiprocessing
import os
import re
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.util import find_spec
from multiprocessing import resource_tracker
from pathlib import Path
from typing import IO

from pydantic import TypeAdapter, ValidationError

import dgm.policies
import dgm.simulation
from dgm.errors import DgmError, Infrastructure, UserError
from dgm.plugins import find_installed, is_reference
from dgm.simulation.families import FAMILIES, OPERATORS, check_family
from dgm.simulation.policies import check_policy
from dgm.simulation.trial import Result, Trial, perform, quiet

MAX_WORKERS = 256
"""As in ``Settings.workers``."""
COLUMNS = ("version", *(field.name for kind in (Trial, Result) for field in fields(kind)))
"""Of a CSV file; a curve is one column, its numbers separated by spaces."""
_TRIAL, _RESULT = TypeAdapter(Trial), TypeAdapter(Result)

Results = Mapping[Trial, Result]
OnTrial = Callable[[int, int], object]
"""Is called with the number of trials done in this session, and their total; first with 0 done."""


@dataclass(frozen=True, slots=True)
class Study:
    """Policies, families and worlds to try, and the conditions that all trials share."""

    policies: tuple[str, ...]
    families: tuple[str, ...]
    worlds: tuple[int, ...]
    """Their numbers in each family."""
    budget: int = 800
    expansion_cost: float = 1.0
    workers: int | None = None
    """None: as many as each family is meant to be met with."""
    failures: float = 0.0

    def __post_init__(self) -> None:
        """Check everything before any trial.

        Raises:
            UserError: something is wrong; the message names the first.
        """
        for family in self.families:
            check_family(family)
            for policy in self.policies:
                check_policy(policy, family)
        most = 1 if OPERATORS in self.families else MAX_WORKERS  # time is spent in the family "operators"
        for name, right, expected in (
            ("budget", self.budget >= 1, "1 evaluation or more"),
            ("expansion_cost", 0 <= self.expansion_cost < float("inf"), "0 or more evaluations"),
            ("workers", self.workers is None or 1 <= self.workers <= most, f"from 1 to {most}"),
            ("failures", 0 <= self.failures < 1, "a share from 0 to below 1"),
        ):
            if not right:
                raise UserError(f"must be {expected}, not {getattr(self, name)}", argument=name)

    def trial(self, policy: str, family: str, world: int) -> Trial:
        """Return the trial of a policy in a world."""
        workers = FAMILIES[family].workers if self.workers is None else self.workers
        return Trial(policy, family, world, self.budget, self.expansion_cost, workers, self.failures)

    def trials(self) -> Iterator[Trial]:
        """Yield all trials, with worlds as the outermost loop, so that early results are already paired."""
        for world in self.worlds:
            for family in self.families:
                for policy in self.policies:
                    yield self.trial(policy, family, world)


def carry_out(study: Study, jobs: int, on_trial: OnTrial, file: Path | None = None) -> Results:
    """Perform the trials of a study, and return their results.

    Args:
        study: the trials to perform.
        jobs: the number of processes; one means this process.
        on_trial: is called after each trial.
        file: CSV file to which each result is appended; trials that it holds already are not repeated.

    Raises:
        DgmError: a trial failed; the message says which and how.
        UserError: the file cannot be written, or holds something else.
        Infrastructure: a process died, or the disk is full.
    """
    trials = list(dict.fromkeys(study.trials()))
    with _saved(file) as (known, save):
        missing = [trial for trial in trials if trial not in known]
        on_trial(0, len(missing))
        with closing(perform_all(missing, min(jobs, max(len(missing), 1)))) as arriving:
            for done, (trial, result) in enumerate(arriving, 1):
                save(trial, result)
                on_trial(done, len(missing))
        return {trial: known[trial] for trial in trials}


def perform_all(trials: Sequence[Trial], jobs: int) -> Generator[tuple[Trial, Result]]:
    """Perform trials, and yield each result as it arrives. Closing the generator ends all processes.

    Raises:
        DgmError: a trial failed; the message says which and how.
        Infrastructure: a process died.
    """
    if jobs == 1:
        for trial in trials:
            yield trial, _perform(trial)
        return
    with _processes(jobs) as executor:
        # Children must not get the Ctrl-C of a terminal; the resource tracker's start would unblock it.
        resource_tracker.ensure_running()
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            futures = {executor.submit(_perform, trial): trial for trial in trials}
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)
        for future in as_completed(futures):
            try:
                yield futures[future], future.result()
            except BrokenProcessPool as error:
                raise Infrastructure("a process that performs trials died") from error


def _perform(trial: Trial) -> Result:
    """Perform a trial; name it in the message of any error.

    Raises:
        DgmError: the trial failed.
    """
    try:
        return perform(trial)
    except Exception as error:  # a plug-in may raise anything
        name = f"{trial.policy} in {trial.family} {trial.seed}"
        if isinstance(error, DgmError):
            raise type(error)(f"{name}: {error}") from error
        where = traceback.extract_tb(error.__traceback__)[-1]
        raise DgmError(
            f"{name}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})"
        ) from error


@contextmanager
def _processes(count: int) -> Iterator[ProcessPoolExecutor]:
    """Open processes; end them at once when the context is left by an error or Ctrl-C."""
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _begin)
    try:
        yield executor
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


def _begin() -> None:
    """Prepare a process that performs trials: it ignores Ctrl-C, and ends when its parent dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    quiet()

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextmanager
def _saved(file: Path | None) -> Iterator[tuple[dict[Trial, Result], Callable[[Trial, Result], None]]]:
    """Open a CSV file of trials; yield the known results, and a function that adds one and appends it.

    Raises:
        UserError: the file cannot be written, or holds something else.
    """
    known: dict[Trial, Result] = {}
    if file is None:
        yield known, known.__setitem__
        return
    try:
        table = file.open("a+", encoding="utf-8", newline="")
    except OSError as error:
        raise UserError(f"{file}: cannot be written: {error.strerror}") from error
    with table:
        _read(file, table, known)
        writer = csv.writer(table, lineterminator="\n")
        if table.seek(0, os.SEEK_END) == 0:
            writer.writerow(COLUMNS)

        def save(trial: Trial, result: Result) -> None:
            known[trial] = result
            row = {**asdict(trial), **asdict(result), "curve": " ".join(map(repr, result.curve))}
            try:
                writer.writerow([code_version(trial.policy), *row.values()])
                table.flush()
            except OSError as error:
                raise Infrastructure(error.errno, f"cannot write {file}: {error.strerror}") from error

        yield known, save


def _read(file: Path, table: IO[str], known: dict[Trial, Result]) -> None:
    """Add the results of the current code; cut off an incomplete last line, which a killed process left."""
    table.seek(0)
    content = table.read()
    complete = content[: content.rfind("\n") + 1]
    if content and not complete.startswith(",".join(COLUMNS) + "\n"):
        raise UserError(f"{file}: is not a table of simulated searches; choose another file")
    for number, row in enumerate(csv.DictReader(complete.splitlines()), 2):
        try:
            trial = _TRIAL.validate_python({field.name: row[field.name] for field in fields(Trial)})
            values = {field.name: row[field.name] for field in fields(Result)}
            result = _RESULT.validate_python(values | {"curve": row["curve"].split()})
        except (ValidationError, AttributeError) as error:
            raise UserError(f"{file}:{number}: is not a simulated search; choose another file") from error
        if row["version"] == code_version(trial.policy):
            known[trial] = result
    if len(complete) < len(content):
        table.truncate(len(complete.encode()))


@cache
def code_version(policy: str) -> str:
    """Return a digest of what decides a trial: dgm's policies and worlds, and the modules of a plug-in policy.

    Saved results are used again only for the same code.
    """
    files = [
        file
        for package in (dgm.policies, dgm.simulation)
        for file in Path(package.__path__[0]).rglob("*")
        if file.suffix in (".py", ".toml")
    ]
    points = {
        name: point.module
        for group in ("policies", "recommendations")
        for name, point in find_installed(group).items()
    }
    for name in re.split(r"[+=]", policy):
        module = name.partition(":")[0] if is_reference(name) else points.get(name)
        spec = find_spec(module) if module else None
        if spec is not None and spec.origin:
            files.append(Path(spec.origin))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in sorted(files))).hexdigest()[:16]
