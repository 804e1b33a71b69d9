"""``dgm solve``: an agent of the archive works on a repository of yours, in a sandbox; you decide what comes of it."""

import asyncio
import sys
from pathlib import Path

import click

from dgm import assemble
from dgm.archive.run import Run
from dgm.cli.arguments import Amount, as_json, find_agent, open_run
from dgm.cli.complaint import FAILED
from dgm.cli.consent import ask_to_spend
from dgm.cli.output import emit_json
from dgm.config import Settings
from dgm.errors import UserError
from dgm.models.auto import settle
from dgm.models.choose import AUTO
from dgm.sandboxes.choose import EngineName, choose
from dgm.search.summary import spend_record
from dgm.show.safe import neutral
from dgm.simulate import check_performed


@click.command()
@click.option("--agent", "which", required=True, metavar="RUN:AGENT", help="For example myrun:best.")
@click.option("--repo", required=True, type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--model", help="The model it is lent (default: the run's).")
@click.option("--max-usd", type=Amount(), help="Money for all its model calls.")
@click.option(
    "--sandbox", type=click.Choice(["auto", "docker", "bubblewrap"]), default="auto", show_default=True
)
@click.option("--timeout", "time_limit_s", type=Amount(1.0), default=600.0, show_default=True)
@click.option("--yes", is_flag=True, help="Apply the change without asking.")
@as_json
@click.argument("problem")
def solve(
    which: str,
    repo: Path,
    model: str | None,
    max_usd: float | None,
    sandbox: EngineName,
    time_limit_s: float,
    yes: bool,
    as_json: bool,
    problem: str,
) -> int:
    """Let an agent work on a copy of a repository; shows the diff, and changes the repository only if you say yes."""
    from dgm.search import solving
    from dgm.search.rehearsal import rehearse

    run_name, found, agent_name = which.rpartition(":")
    if not found:
        raise UserError(f"--agent {which}: expected RUN:AGENT, for example {which}:best")
    with open_run(run_name) as run:
        check_performed(run)
        agent = find_agent(run, agent_name)
        source = run.repository.source(agent.commit)
        settings = _settings(run, model, max_usd)
    before = solving.user_files(repo)
    asyncio.run(rehearse(which, source, choose(sandbox), settings.limits))
    solved = asyncio.run(
        solving.solve(source, before, problem, solving.Means(settings, sandbox, time_limit_s))
    )
    work = solved.work
    applied = False
    if not as_json:
        _show(work.patch)
    if work.patch and (yes or (not as_json and _agreed())):
        solving.apply(repo, work.patch)
        applied = True
    if as_json:
        patch = work.patch.decode("utf-8", "replace")
        spend = spend_record(solved.usage)
        emit_json(
            {"agent": agent.id, "applied": applied, "patch": patch, "calls": work.calls, "spend": spend}
        )
    elif work.patch:
        sys.stdout.write("applied\n" if applied else "nothing was changed\n")
    if solved.usage.usd and not as_json:
        sys.stdout.write(f"{solved.usage.calls} model calls, {solved.usage.usd:.4f} USD\n")
    return 0 if work.patch else FAILED


def _agreed() -> bool:
    """What the user says; where nobody answers, that is no: the change has been shown, and nothing is lost."""
    try:
        return click.confirm("Apply this change?", default=False)
    except click.Abort:
        sys.stdout.write("\nnobody answered (--yes applies without asking)\n")
        return False


def _settings(run: Run, model: str | None, max_usd: float | None) -> Settings:
    """The run's settings, with what the flags change."""
    settings = assemble.settings_of(run)
    if model:
        roles = settings.models.model_copy(update={"solve": None})
        settings = settings.model_copy(update={"model": model, "models": roles})
        if model == AUTO:
            settings, why = settle(settings, ask_to_spend)
            sys.stderr.write(f"model: {why}\n")
    if max_usd is not None:
        limits = settings.limits.model_copy(update={"usd": max_usd})
        settings = settings.model_copy(update={"limits": limits})
    return settings


def _show(patch: bytes) -> None:
    text = neutral(patch.decode("utf-8", "replace"))
    sys.stdout.write(text or "the agent changed nothing\n")
