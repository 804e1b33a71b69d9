"""``dgm stop``: end a search in good order."""

import click

from dgm.archive.finding import find_run
from dgm.archive.stop_request import stop_run
from dgm.cli.arguments import as_json, run_argument
from dgm.cli.output import emit_json, make_console
from dgm.show.safe import one_line


@click.command()
@run_argument
@click.option("--now", is_flag=True, help="Do not wait for the steps that are under way.")
@as_json
def stop(run_name: str, now: bool, as_json: bool) -> None:
    """Ask a running search to end: it starts nothing new, records what is under way, and exits."""
    folder = find_run(run_name)
    name = folder.resolve().name
    holder = stop_run(folder, now=now)
    if as_json:
        state = {"stopped": True, "pid": holder.pid} if holder else {"stopped": False, "state": "not running"}
        emit_json({"run": name, **state})
    elif holder is None:
        make_console().print(f"{name} is not running")
    else:
        host = "" if holder.is_reachable else f" on {one_line(holder.host, 100)}"
        make_console().print(f"asked pid {holder.pid}{host} to stop; go on later with: dgm resume {run_name}")
