"""``dgm solve``: an agent of the archive works on a repository of yours, in a sandbox; you decide what comes of it."""

import asyncio
import sys
from pathlib import Path

import click

from dgm.cli.arguments import as_json, find_agent, open_run
from dgm.cli.complaint import FAILED
from dgm.cli.output import emit_json, neutral
from dgm.errors import UserError
from dgm.sandboxes.choose import EngineName


@click.command()
@click.option("--agent", "which", required=True, metavar="RUN:AGENT", help="For example myrun:best.")
@click.option("--repo", required=True, type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--model", help="The model it is lent (default: the run's).")
@click.option(
    "--sandbox", type=click.Choice(["auto", "docker", "bubblewrap"]), default="auto", show_default=True
)
@click.option("--timeout", "time_limit_s", type=click.FloatRange(min=1), default=600.0, show_default=True)
@click.option("--yes", is_flag=True, help="Apply the change without asking.")
@as_json
@click.argument("problem")
def solve(
    which: str,
    repo: Path,
    model: str | None,
    sandbox: EngineName,
    time_limit_s: float,
    yes: bool,
    as_json: bool,
    problem: str,
) -> int:
    """Let an agent work on a copy of a repository; shows the diff, and changes the repository only if you say yes."""
    from dgm.search import solving

    run_name, found, agent_name = which.rpartition(":")
    if not found:
        raise UserError(f"--agent {which}: expected RUN:AGENT, for example {which}:best")
    with open_run(run_name) as run:
        agent = find_agent(run, agent_name)
        source = run.repository.source(agent.commit)
        model = model or run.config["settings"]["model"]
    before = solving.user_files(repo)
    work = asyncio.run(solving.solve(source, before, problem, solving.Means(model, sandbox, time_limit_s)))
    applied = False
    if not as_json:
        _show(work.patch)
    if work.patch and (yes or (not as_json and click.confirm("Apply this change?", default=False))):
        solving.apply(repo, work.patch)
        applied = True
    if as_json:
        patch = work.patch.decode("utf-8", "replace")
        emit_json({"agent": agent.id, "applied": applied, "patch": patch, "calls": work.calls})
    elif work.patch:
        sys.stdout.write("applied\n" if applied else "nothing was changed\n")
    return 0 if work.patch else FAILED


def _show(patch: bytes) -> None:
    text = neutral(patch.decode("utf-8", "replace"))
    sys.stdout.write(text or "the agent changed nothing\n")
