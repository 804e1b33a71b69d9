"""``dgm agent``: the agents that a search can start from, the shipped ones and the user's own."""

import sys

import click

from dgm.cli.agent_ablate import ablate
from dgm.cli.agent_check import check
from dgm.cli.agent_init import init
from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json


@click.group()
def agent() -> None:
    """Make, check and ablate an agent of your own, and list those that are shipped (dgm run --seed-agent)."""


agent.add_command(ablate)
agent.add_command(init)
agent.add_command(check)


@agent.command(name="list")
@as_json
def list_(as_json: bool) -> None:
    """List the shipped agents and the models that they are for."""
    from dgm.sessions.seed_agents import list_seed_agents

    rows = list_seed_agents()
    if as_json:
        emit_json({"agents": rows})
        return
    for row in rows:
        size = (
            f"{row['files']} files, {row['python_lines']} lines of Python; default for {row['default_for']}"
        )
        sys.stdout.write(f"{row['name']:<8} {row['description']}\n{'':<8} {size}\n{'':<8} {row['folder']}\n")
    sys.stdout.write(
        "Another one: dgm run --seed-agent FOLDER, or the URL of a git repository; dgm agent init FOLDER makes one.\n"
    )
