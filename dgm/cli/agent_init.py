"""``dgm agent init``: write a template of an agent into a new folder."""

import sys
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dgm.cli.arguments import as_json
from dgm.cli.output import emit_json
from dgm.show.safe import neutralise
from dgm.show.words import count_text

if TYPE_CHECKING:
    from dgm.sessions.imported_agent import ImportedAgent


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "template",
    metavar="TEMPLATE",
    default="solid",
    show_default=True,
    help="solid, shell, claude-code, codex, opencode, copilot, qwen-code, cline, aider, anthropic, openai-agents, "
    "langchain, smolagents, mini-swe-agent or node.",
)
@click.option(
    "--import",
    "repository",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Take over what this repository holds for the template's program: instructions, skills, settings.",
)
@click.option(
    "--evolve",
    metavar="KINDS",
    default="",
    help="With --import: let evolution edit these, too: hooks, permissions, mcp; separated by commas.",
)
@as_json
def init(folder: Path, template: str, repository: Path | None, evolve: str, as_json: bool) -> None:
    """Write a working agent into DIR, a new folder.

    It is a start: change it into your own. With --import it begins with your own setup of a program.
    """
    from dgm.sessions.agent_templates import create_agent

    kinds = tuple(filter(None, map(str.strip, evolve.split(","))))
    created = create_agent(folder, template, repository, kinds)
    if as_json:
        emit_json(
            {"folder": str(created.folder), "template": created.template.name, "files": created.files}
            | {"edit": list(created.template.edit), "imported": _import_record(created.imported)}
        )
        return
    where = neutralise(str(folder))
    edit = " and ".join(f"{where}/{name}" for name in created.template.edit)
    change = "" if created.imported else f"  change it              {edit}\n"
    mine, suite = "", ""
    if repository:
        mine = (
            f"  dgm benchmark mine {neutralise(str(repository))} --out SUITE   makes tasks of its history\n"
        )
        suite = " --benchmark SUITE"
    sys.stdout.write(
        f"{where} holds an agent ({created.template.description}; {count_text(created.files, 'file')})."
        f"{_describe_import(created.imported) or ' '}Next:\n"
        f"{change}"
        f"  dgm agent check {where}   says what would stop a search, before it costs anything\n"
        f"{mine}"
        f"  dgm run --seed-agent {where}{suite} --model MODEL --max-usd 5\n"
    )


def _import_record(imported: "ImportedAgent | None") -> dict[str, Any] | None:
    if imported is None:
        return None
    setup = imported.setup
    return {
        "taken": [{"path": path, "kind": kind.value} for path, kind in setup.kinds.items()],
        "left_out": [asdict(remark) for remark in setup.left_out],
        "out_of_reach": [asdict(remark) for remark in setup.out_of_reach],
        "evolves": list(imported.evolves),
        "version": imported.version,
        "version_remark": imported.version_remark,
    }


def _describe_import(imported: "ImportedAgent | None") -> str:
    if imported is None:
        return ""
    setup = imported.setup
    counts = Counter(setup.kinds.values())
    rows = [("taken", ", ".join(f"{kind.value} {count}" for kind, count in counts.items()) + " (files)")]
    rows += [("left out", f"{remark.path}: {remark.reason}") for remark in setup.left_out]
    rows += [("will not work", f"{remark.path}: {remark.reason}") for remark in setup.out_of_reach]
    rows += [("evolves", ", ".join(imported.evolves))]
    rows += [("version", f"{imported.version} ({imported.version_remark})")]
    lines = [f"  {name:<15}{neutralise(text)}\n" for name, text in rows]
    return "\n" + "".join(lines)
