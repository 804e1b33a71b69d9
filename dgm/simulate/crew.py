"""Trials on all cores: processes that perform one trial after another, with one thread each."""

import logging
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from dgm.errors import DgmError, Infrastructure
from dgm.simulate.trial import Result, Trial, perform

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_STOP_S = 5.0


def performed(trials: Iterable[Trial], processes: int) -> Generator[tuple[Trial, Result]]:
    """Perform trials, and yield each result when it is there.

    One process means this one; then results come in the order of the trials. Closing the generator ends all processes.

    Raises:
        DgmError: a trial went wrong; the message says which and how.
        Infrastructure: a process died.
    """
    if processes == 1:
        for trial in trials:
            yield trial, _performed(trial)
        return
    with _crew(processes) as members:
        waiting = iter(trials)
        busy: dict[Connection, Trial] = {}
        idle = list(members)
        while True:
            for member, trial in zip(idle, waiting, strict=False):
                _send(member, trial)
                busy[member] = trial
            if not busy:
                return
            ready = set(wait(list(busy)))
            idle = [member for member in members if member in ready or member not in busy]
            for member in [member for member in busy if member in ready]:
                trial = busy.pop(member)
                yield trial, _received(member, trial)


def _performed(trial: Trial) -> Result:
    try:
        return perform(trial)
    except Exception as error:
        raise _named(trial, error) from error


def _named(trial: Trial, error: Exception) -> DgmError:
    """Return the error of a trial as one line that names the trial."""
    if isinstance(error, DgmError):
        return type(error)(f"{trial}: {error}")
    where = traceback.extract_tb(error.__traceback__)[-1]
    return DgmError(f"{trial}: {type(error).__name__}: {error} ({where.filename}:{where.lineno})")


def _send(connection: Connection, trial: Trial) -> None:
    try:
        connection.send(trial)
    except BrokenPipeError as error:
        raise Infrastructure("a process that performs trials died") from error


def _received(connection: Connection, trial: Trial) -> Result:
    try:
        said = connection.recv()
    except EOFError as error:
        raise Infrastructure(f"the process that performed {trial} died") from error
    if isinstance(said, Result):
        return said
    raise said


def quiet() -> None:
    """Keep the loop from reporting simulated failures like real ones: log only errors of ``dgm.search``."""
    logging.getLogger("dgm.search").setLevel(logging.ERROR)


def _serve(connection: Connection) -> None:
    """Perform the trials that arrive on the connection until it is closed or the parent is dead."""
    # Both signals reach every process of a terminal, but only the parent is to react.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    quiet()
    while True:
        try:
            trial = connection.recv()
        except EOFError:
            return
        try:
            said: Result | DgmError = _performed(trial)
        except DgmError as error:
            said = error
        try:
            connection.send(said)
        except BrokenPipeError:
            return


@contextmanager
def _crew(processes: int) -> Iterator[list[Connection]]:
    context = multiprocessing.get_context("spawn")
    connections: list[Connection] = []
    members: list[SpawnProcess] = []
    try:
        with _heirs():
            for _ in range(processes):
                ours, theirs = context.Pipe()
                member = context.Process(target=_serve, args=(theirs,), daemon=True)
                member.start()
                theirs.close()
                connections.append(ours)
                members.append(member)
        yield connections
    finally:
        for connection in connections:
            connection.close()
        for member in members:
            member.terminate()
        for member in members:
            member.join(_STOP_S)


@contextmanager
def _heirs() -> Iterator[None]:
    """Give the processes that are started in this context one thread each, and block Ctrl-C for them.

    The signal is held back, not ignored: a Ctrl-C that comes meanwhile takes effect at the end. The resource tracker is
    started before, because its start would let the signal through.
    """
    resource_tracker.ensure_running()
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    with _interrupts_later():
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)


@contextmanager
def _interrupts_later() -> Iterator[None]:
    """Delay Ctrl-C until the context ends, so that starting a process is never interrupted.

    Blocking is not enough: a blocked signal still reaches the program by any other thread that it has.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if heard:
            signal.raise_signal(signal.SIGINT)
