"""``dgm list``: list all runs of an archive, also damaged ones and those of other machines."""

import shutil
import sys
import time
from pathlib import Path

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json


@click.command(name="list")
@click.argument("folder", required=False, type=click.Path(path_type=Path))
@click.option("--sizes", is_flag=True, help="Add up the disk space of each run, which looks at every file.")
@as_json
def list_(folder: Path | None, sizes: bool, as_json: bool) -> None:
    """List all runs in FOLDER (default: $DGM_ARCHIVE and ./archive): state, age, best agent, spend, budget left.

    The run that wrote its last event most recently comes first. AGE is since it was made, LAST since its last event.
    BEST is the agent that the run's policy recommends: resolved and graded evaluations, and the lower bound of its
    rate. LEFT is the limit of which least is left.
    """
    from dgm.analysis.run_list import SCHEMA, find_all_runs, row_record
    from dgm.show.runs import run_lines
    from dgm.show.terminal import write_lines

    found = find_all_runs(folder, sizes=sizes)
    if as_json:
        places = [str(place) for place in found.folders]
        emit_json({"schema": SCHEMA, "folders": places, "runs": [row_record(row) for row in found.rows]})
    elif found.rows:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        write_lines(run_lines(found.rows, time.time(), sizes=sizes, width=width), crop=True)
    else:
        sys.stdout.write(f"no runs in {' or '.join(map(str, found.folders))}; start one with: dgm run\n")
