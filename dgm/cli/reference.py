"""All commands as one cyclopts app, for completion in shells and the documentation's reference (``docs/reference``)."""

import sys
from importlib import import_module

from cyclopts import App, Parameter
from cyclopts.completion.detect import ShellDetectionError

from dgm.cli.commands import COMMANDS
from dgm.errors import UserError

SHELLS = ("bash", "zsh", "fish")

app = App(name="dgm", version_flags=[], help_format="markdown", default_parameter=Parameter(negative=()))
_groups: dict[str, App] = {}

for _command in COMMANDS.values():
    _module, _, _attribute = _command.target.partition(":")
    _group, _, _name = _command.name.rpartition(" ")
    if _group and _group not in _groups:
        _groups[_group] = App(name=_group)
        app.command(_groups[_group])
    (_groups[_group] if _group else app).command(getattr(import_module(_module), _attribute), name=_name)


def install(words: list[str]) -> int:
    """Write the completion script of a shell, by default the one that started dgm, and let it load from now on.

    Raises:
        UserError: there is none for that shell.
    """
    shell = words[0] if words else None
    if shell and shell not in SHELLS:
        raise UserError(f"no completion for {shell!r}; there are {', '.join(SHELLS)}")
    try:
        file = app.install_completion(shell=shell)  # type: ignore[arg-type]
    except ShellDetectionError as error:
        raise UserError(f"this shell is not known; name one of {', '.join(SHELLS)}") from error
    sys.stdout.write(f"wrote {file}; open a new shell to use it\n")
    return 0
