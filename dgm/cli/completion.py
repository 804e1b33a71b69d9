"""``dgm --install-completion``: completion of commands and options in the user's shell, by cyclopts."""

import sys
from importlib import import_module
from inspect import isfunction

from cyclopts import App, Parameter
from cyclopts.completion.detect import ShellDetectionError

from dgm.cli.commands import COMMANDS
from dgm.errors import UserError

SHELLS = ("bash", "zsh", "fish")


def install(words: list[str]) -> int:
    """Write the completion script of a shell, by default the one that started dgm, and let it load from now on.

    Raises:
        UserError: there is none for that shell.
    """
    app = App(name="dgm", version_flags=[], default_parameter=Parameter(negative=()))
    for name, spec in COMMANDS.items():
        module, _, attribute = spec.target.partition(":")
        function = getattr(import_module(module), attribute)
        if not isfunction(function):
            continue
        group, _, inner = name.rpartition(" ")
        if group and group not in app:
            app.command(App(name=group))
        parent = app[group] if group else app
        parent.command(function, name=inner)
    shell = words[0] if words else None
    if shell and shell not in SHELLS:
        raise UserError(f"no completion for {shell!r}; there are {', '.join(SHELLS)}")
    try:
        file = app.install_completion(shell=shell)  # type: ignore[arg-type]
    except ShellDetectionError as error:
        raise UserError(f"this shell is not known; name one of {', '.join(SHELLS)}") from error
    sys.stdout.write(f"wrote {file}; open a new shell to use it\n")
    return 0
