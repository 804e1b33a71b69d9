"""``dgm browse``: view a run in the terminal, also while it is being written."""

import os
import sys

import click

from dgm.archive.finding import find_run
from dgm.errors import UserError


@click.command()
@click.argument("run_name", metavar="RUN")
@click.option("--follow", is_flag=True, help="Let the cursor follow what happens, until a key moves it.")
@click.option(
    "--theme",
    type=click.Choice(["dark", "light", "ansi"]),
    help="Colours; 'ansi' are the terminal's own. [default: dark, or what TEXTUAL_THEME names]",
)
@click.option("--agent", "agent_name", metavar="ID", type=click.IntRange(min=0), help="Begin at this agent.")
def browse(run_name: str, follow: bool, theme: str | None, agent_name: int | None) -> None:
    """Look through a run: its tree, agents, tasks, diffs and spend. Press ? for the keys.

    The run is only read, and may be written meanwhile.
    """
    # Textual draws on standard error.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(stream.isatty() for stream in streams) or os.environ.get("TERM", "dumb") in ("", "dumb"):
        raise UserError("browse needs a terminal; dgm tree, dgm show and dgm report print")
    from dgm.tui.reader import RunReader

    # A thread reads the run while this thread imports; for the same reason this module imports little.
    with RunReader(find_run(run_name)) as reader:
        from dgm.domain import AgentId
        from dgm.tui.app import Browser

        agent = None if agent_name is None else AgentId(agent_name)
        if agent is not None and (why := reader.explain_missing_agent(agent)):
            raise UserError(why)
        browser = Browser(reader, follow=follow, theme=theme, agent=agent)
        browser.run()
        sys.exit(browser.return_code or 0)
