"""``dgm agent check``: say what would stop a search with an agent, before money flows."""

import asyncio
import sys
from pathlib import Path

import click

from dgm.cli.arguments import Amount, as_json, engine_option
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json
from dgm.errors import UserError
from dgm.show.safe import one_line

SAID_CHARS, WRITE_CHARS = 400, 400


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--model", help="Let it do one small task with this model, too; this may cost money.")
@click.option("--max-usd", type=Amount(), help="Money for that task, with --model (default 1).")
@click.option(
    "--sandbox", type=click.Choice(["auto", "docker", "bubblewrap"]), default="auto", show_default=True
)
@engine_option
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting, such as limits.check_s; model=NAME: the agent is told that name, and nothing is paid.",
)
@as_json
def check(
    folder: Path,
    model: str | None,
    max_usd: float | None,
    sandbox: str,
    assignments: tuple[str, ...],
    as_json: bool,
) -> int:
    """Say what would stop a search with the agent in DIR.

    Its manifest, sizes, packages and start are looked at, and a dry conversation of each kind, to which a scripted
    model answers at no cost. Exit code 0: nothing would stop a search; 1: something would.
    """
    from dgm.sessions.agent_check import MAX_USD, CheckChoice, check_agent, findings_record

    def begins(part: str) -> None:
        if not as_json:
            sys.stderr.write(f"{part} …\n")

    if max_usd is not None and not model:
        raise UserError("--max-usd: nothing is paid without a model; give --model, too")
    choice = CheckChoice(sandbox, model, MAX_USD if max_usd is None else max_usd, assignments)
    done = asyncio.run(check_agent(folder, choice, begins))
    if as_json:
        emit_json(
            {
                "folder": str(done.folder),
                "fit": done.fit,
                "findings": findings_record(done),
                "usd": done.usage.usd,
            }
        )
    else:
        for finding in done.findings:
            sys.stdout.write(f"{finding.level:<5} {finding.part:<9} {one_line(finding.said, SAID_CHARS)}\n")
            if finding.write:
                sys.stdout.write(f"{'':<5} {'':<9} write: {one_line(finding.write, WRITE_CHARS)}\n")
        end = (
            f"next: dgm run --seed-agent {folder} --model MODEL"
            if done.fit
            else "a search would stop at this"
        )
        sys.stdout.write(f"{one_line(end, SAID_CHARS)}\n")
    return 0 if done.fit else FAILED
