"""``dgm status`` and ``dgm stop``: what a search is doing, and how to end it in good order."""

import os
import signal
import socket
import sys
import time

import click

from dgm.archive.finding import find_run
from dgm.archive.history import LIVING, state, writer
from dgm.cli.arguments import as_json, open_run, run_argument
from dgm.cli.output import console, emit_json
from dgm.errors import UserError
from dgm.search.summary import run_summary
from dgm.show.status import status_lines
from dgm.show.terminal import write


@click.command()
@run_argument
@click.option("--watch", is_flag=True, help="Print again every two seconds until the run ends.")
@as_json
def status(run_name: str, watch: bool, as_json: bool) -> None:
    """Say how far a search is, what it has spent, and which agent is best: the one that the policy recommends."""
    with open_run(run_name) as run:
        while True:
            if as_json:
                emit_json(run_summary(run))
            else:
                write(status_lines(run))
            if not watch or state(run) not in LIVING:
                return
            sys.stdout.flush()
            time.sleep(2.0)
            run.follow()


@click.command()
@run_argument
@click.option("--now", is_flag=True, help="Do not wait for the steps that are under way.")
@as_json
def stop(run_name: str, now: bool, as_json: bool) -> None:
    """Ask a running search to end: it starts nothing new, records what is under way, and exits."""
    folder = find_run(run_name)
    holder, name = writer(folder), folder.resolve().name
    if holder is None:
        if as_json:
            emit_json({"run": name, "stopped": False, "state": "not running"})
        else:
            console().print(f"{name} is not running")
        return
    pid, host = holder
    if host != socket.gethostname():
        raise UserError(f"{name} is running on {host} (pid {pid}); stop it there")
    _terminate(pid, name)
    if now:
        time.sleep(0.5)
        _terminate(pid, name)
    if as_json:
        emit_json({"run": name, "stopped": True, "pid": pid})
    else:
        console().print(f"asked pid {pid} to stop; go on later with: dgm resume {run_name}")


def _terminate(pid: int, name: str) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise UserError(f"{name} is run by another user (pid {pid}); stop it as that user") from error
