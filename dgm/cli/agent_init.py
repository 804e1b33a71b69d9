"""``dgm agent init``: write a template of an agent into a new folder."""

import sys
from pathlib import Path

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json
from dgm.show.safe import neutralise
from dgm.show.words import count_text


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "template",
    metavar="TEMPLATE",
    default="solid",
    show_default=True,
    help="solid, shell, anthropic, openai-agents, langchain, smolagents, mini-swe-agent, node, claude-code or codex.",
)
@as_json
def init(folder: Path, template: str, as_json: bool) -> None:
    """Write a working agent into DIR, a new folder.

    It is a start: change it into your own.
    """
    from dgm.sessions.agent_templates import create_agent

    made = create_agent(folder, template)
    if as_json:
        emit_json(
            {"folder": str(made.folder), "template": made.template.name, "files": made.files}
            | {"edit": list(made.template.edit)}
        )
        return
    where = neutralise(str(folder))
    edit = " and ".join(f"{where}/{name}" for name in made.template.edit)
    sys.stdout.write(
        f"{where} holds an agent ({made.template.description}; {count_text(made.files, 'file')}). Next:\n"
        f"  change it              {edit}\n"
        f"  dgm agent check {where}   says what would stop a search, before it costs anything\n"
        f"  dgm run --seed-agent {where} --model MODEL --max-usd 5\n"
    )
