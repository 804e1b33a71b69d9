"""Performs one click command: ``-h`` is ``--help`` everywhere, and every terminal can show the help."""

import click

from dgm.cli.app import ask_for_consent
from dgm.cli.steps import show_preparations
from dgm.consents import ConsentNeeded

HELP_NAMES = ["-h", "--help"]


def invoke_command(command: click.Command, words: list[str], name: str) -> int:
    """Perform a command and return its exit code; again after each yes that it needs and a person gives.

    Args:
        command: with all commands below it.
        words: the words after its name.
        name: its name as typed, for its messages.

    Raises:
        click.exceptions.Exit: it ends with a code of its own, as ``--help`` does.
    """
    show_preparations()
    while True:
        try:
            return _invoke_once(command, words, name)
        except ConsentNeeded as needed:
            if not ask_for_consent(needed):
                raise


def _invoke_once(command: click.Command, words: list[str], name: str) -> int:
    with command.make_context(name, list(words), help_option_names=HELP_NAMES) as context:
        result = command.invoke(context)
    return result if isinstance(result, int) else 0
