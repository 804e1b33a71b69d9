"""``dgm browse``: view a run in the terminal, also while it is being written."""

import os
import sys
from typing import Literal

from dgm.archive.finding import find_run
from dgm.errors import UserError


def browse(
    run: str, agent: str | None = None, /, *, theme: Literal["dark", "light", "ansi"] | None = None
) -> int:
    """Look through a run: its tree, agents, tasks, diffs and spend. Press ? for the keys.

    The run is only read, and may be written meanwhile. The answers to children that wait for approval are the only
    thing that is written.

    Args:
        run: Name, folder or packed run.
        agent: Agent to start with: a number, or best.
        theme: Colours; ansi uses those of the terminal, and TEXTUAL_THEME names any theme of Textual.
    """
    # Textual draws on standard error.
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if not all(stream.isatty() for stream in streams) or os.environ.get("TERM", "dumb") in ("", "dumb"):
        raise UserError("browse needs a terminal; status, show and report print")
    if agent is not None and agent != "best" and not (agent.isascii() and agent.isdigit()):
        raise UserError(f"{agent!r} is neither the number of an agent nor 'best'", argument="agent")
    from dgm.tui.reader import BackgroundReader

    # The reader's thread opens the run while this thread imports the app.
    reader = BackgroundReader(find_run(run))
    from dgm.tui.app import Browser

    browser = Browser(reader, agent=agent, theme=theme)
    browser.run()
    if browser.failure is not None:
        raise browser.failure
    return browser.return_code or 0
