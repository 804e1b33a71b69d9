"""``dgm export``: an agent's source as a folder of its own."""

import sys
from pathlib import Path

import click

from dgm.archive.snapshots import write_folder
from dgm.cli.arguments import agent_argument, as_json, find_agent, open_run, run_argument
from dgm.cli.output import emit_json
from dgm.errors import UserError


@click.command()
@run_argument
@agent_argument
@click.argument("target", metavar="DIR", type=click.Path(path_type=Path))
@as_json
def export(run_name: str, agent_name: str, target: Path, as_json: bool) -> None:
    """Copy AGENT's source to the new folder DIR; it can be a --seed-agent, or run by itself."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UserError(f"{target}: already exists and is not an empty folder; choose another one")
    with open_run(run_name) as run:
        agent = find_agent(run, agent_name)
        source = run.repository.source(agent.commit)
    target.mkdir(parents=True, exist_ok=True)
    write_folder(source, target)
    if as_json:
        emit_json({"agent": agent.id, "commit": agent.commit, "folder": str(target), "files": len(source)})
        return
    sys.stdout.write(f"agent {agent.id} ({len(source)} files) is in {target}\n")
