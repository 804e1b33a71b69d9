"""Entry point: finds the command, runs it, and turns every error into one line and an exit code.

Exit codes: 0 done, 1 failed, 2 usage, configuration or a damaged run, 3 budget spent before the goal, 130 interrupted.
"""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from dgm.cli.commands import COMMANDS, MOVED, CommandSpec, group_text, help_text
from dgm.cli.streams import close_streams, open_streams

VERSION = "--version"
HELP = ("--help", "-h")
COMPLETION = "--install-completion"


def main(arguments: list[str] | None = None) -> None:
    """Run the program and exit the process."""
    if sys.platform == "win32":
        sys.exit(refuse_windows())
    open_streams()
    sys.exit(close_streams(_run_command(sys.argv[1:] if arguments is None else arguments)))


def refuse_windows() -> int:
    """Say where dgm runs, and return the exit code."""
    sys.stderr.write("dgm: does not run on Windows itself: install and start it in WSL2 (wsl --install)\n")
    return 2


def _run_command(words: list[str]) -> int:
    try:
        if not words or words[0] in HELP:
            sys.stdout.write(help_text() + "\n")
            return 0
        if words[0] == VERSION:
            from dgm import __version__

            sys.stdout.write(f"dgm {__version__}\n")
            return 0
        if words[1:2] in ([], ["--help"], ["-h"]) and (text := group_text(words[0])):
            sys.stdout.write(f"{text}\n")
            return 0
        if words[0] == COMPLETION:
            from dgm.cli.completion import install

            return install(words[1:])
        with _pause_collector():
            from dgm.cli.signals import allow_interrupts

        # The browser's library restores the terminal by itself, and the browser has nothing else to clean up.
        with nullcontext() if words[0] == "browse" else allow_interrupts():
            return _invoke(words)
    except BaseException as error:  # noqa: BLE001  (the program's edge: everything becomes a line and a code)
        from dgm.cli.complaint import complain

        return complain(error)


@contextmanager
def _pause_collector() -> Iterator[None]:
    """Import without the garbage collector, and leave what was imported out of all its later work.

    Modules are never garbage. Looking at them again and again would take a tenth of the time of a short command.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _invoke(words: list[str]) -> int:
    spec = _find_command(words)
    depth = len(spec.name.split())
    with _pause_collector():
        from importlib import import_module

        module, _, attribute = spec.target.partition(":")
        function = getattr(import_module(module), attribute)
    name, rest = f"dgm {spec.name}", words[depth:]
    for option in (word.partition("=")[0] for word in rest if word.startswith("--")):
        if moved := MOVED.get(f"{spec.name} {option}"):
            from dgm.errors import UserError

            raise UserError(f"'{name} {option}' is now '{moved}'")
    if "click" in sys.modules and isinstance(function, sys.modules["click"].Command):
        from dgm.cli.invoking import invoke_command

        return invoke_command(function, rest, name)
    from dgm.cli.app import run_function

    return run_function(function, rest, name)


def _find_command(words: list[str]) -> CommandSpec:
    """Return the command that the words begin with; its name may have two words."""
    from dgm.errors import UserError

    for name in (" ".join(words[:2]), words[0]):
        if name in COMMANDS:
            return COMMANDS[name]
    for name in (" ".join(words[:2]), words[0]):
        if name in MOVED:
            raise UserError(f"'dgm {name}' is now '{MOVED[name]}'")
    group = [name for name in COMMANDS if name.split()[0] == words[0]]
    if group:
        raise UserError(
            f"'dgm {words[0]}' needs one more word: {', '.join(name.split()[1] for name in group)}"
        )
    import difflib

    near = difflib.get_close_matches(words[0], COMMANDS, 1)
    hint = f"did you mean '{near[0]}'?" if near else "see dgm --help"
    raise UserError(f"there is no command '{words[0]}' ({hint})")
