"""``dgm stop``: end a search in good order."""

import os
import signal
import socket
import time

import click

from dgm.archive.history import writer
from dgm.cli.arguments import as_json, run_argument
from dgm.cli.output import emit_json, make_console
from dgm.errors import UserError
from dgm.publish.finding import find_run


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
            make_console().print(f"{name} is not running")
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
        make_console().print(f"asked pid {pid} to stop; go on later with: dgm resume {run_name}")


def _terminate(pid: int, name: str) -> None:
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise UserError(f"{name} is run by another user (pid {pid}); stop it as that user") from error
