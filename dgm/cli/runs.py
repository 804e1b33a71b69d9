"""``dgm list``: list all runs of an archive, also damaged ones and those of other machines."""

import shutil
import sys
import time
from pathlib import Path

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json
from dgm.errors import UserError
from dgm.publish.finding import archive_folders


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
    from dgm.analysis.run_list import SCHEMA, list_runs, row_record
    from dgm.show.runs import run_lines
    from dgm.show.terminal import write_lines

    if folder is not None and not folder.is_dir():
        raise UserError(f"{folder}: no such folder; give one that holds runs, or none for your archive")
    folders = list({place.resolve(): place for place in ([folder] if folder else archive_folders())}.values())
    rows = [row for place in folders for row in list_runs(place, sizes=sizes)]
    rows.sort(key=lambda row: row.seen.last_at if row.seen else 0.0, reverse=True)
    if as_json:
        places = [str(place) for place in folders]
        emit_json({"schema": SCHEMA, "folders": places, "runs": [row_record(row) for row in rows]})
    elif rows:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        write_lines(run_lines(rows, time.time(), sizes=sizes, width=width), crop=True)
    else:
        sys.stdout.write(f"no runs in {' or '.join(map(str, folders))}; start one with: dgm run\n")
