"""Entry point: finds the command, runs it, and turns every error into one line and an exit code.

Exit codes: 0 done, 1 failed, 2 usage, configuration or a damaged run, 3 budget spent before the goal, 130 interrupted.
"""

# All else is imported by functions, where Ctrl-C ends the program with a line instead of a traceback.
import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgm.cli.commands import CommandSpec

HELP = ("--help", "-h")


def main(arguments: list[str] | None = None) -> None:
    """Run the program and exit the process."""
    if sys.platform == "win32":
        sys.stderr.write("dgm does not run on Windows; use WSL2 (wsl --install)\n")
        sys.exit(2)
    _open_streams()
    sys.exit(_flush(_run(sys.argv[1:] if arguments is None else arguments)))


def _open_streams() -> None:
    """Replace streams that the shell closed, and escape what a stream cannot encode."""
    while (number := os.open(os.devnull, os.O_RDWR)) < 3:
        stream = open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, ("stdin", "stdout", "stderr")[number], stream)
    os.close(number)
    for output in (sys.stdout, sys.stderr):
        if isinstance(output, io.TextIOWrapper):
            output.reconfigure(errors="backslashreplace")


def _flush(code: int) -> int:
    """Flush standard output; return 1 instead of 0 if not all of it was written."""
    try:
        sys.stdout.flush()
    except OSError as error:
        # The interpreter flushes again at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            from contextlib import suppress

            with suppress(OSError):
                sys.stderr.write(f"dgm: cannot write: {error.strerror}\n")
        return code or 1
    return code


def _run(words: list[str]) -> int:
    try:
        from dgm.cli.commands import GROUPS, group_help, help_text

        if not words or words[0] in HELP:
            sys.stdout.write(help_text() + "\n")
            return 0
        if words[0] in GROUPS and (len(words) == 1 or words[1] in HELP):
            sys.stdout.write(group_help(words[0]) + "\n")
            return 0
        if words[0] == "--version":
            from dgm import __version__

            sys.stdout.write(f"dgm {__version__}\n")
            return 0
        if words[0] == "--install-completion":
            from dgm.cli.reference import install

            return install(words[1:])
        return _invoke(words)
    except BaseException as error:  # noqa: BLE001  (the program's edge: everything becomes a line and a code)
        from dgm.cli.complaint import complain

        return complain(error)


def _invoke(words: list[str]) -> int:
    from contextlib import nullcontext
    from importlib import import_module

    from dgm.cli.app import run_function
    from dgm.cli.commands import MOVED
    from dgm.cli.signals import allow_interrupts
    from dgm.errors import UserError

    spec = _find_command(words)
    rest = words[len(spec.name.split()) :]
    for option in (word.partition("=")[0] for word in rest if word.startswith("--")):
        if moved := MOVED.get(f"{spec.name} {option}"):
            raise UserError(f"'dgm {spec.name} {option}' is now '{moved}'")
    rest = _translate(spec.name, rest)
    module, _, attribute = spec.target.partition(":")
    # The browser's library restores the terminal by itself, and the browser has nothing else to clean up.
    with nullcontext() if spec.name == "browse" else allow_interrupts():
        function = getattr(import_module(module), attribute)
        return run_function(function, rest, f"dgm {spec.name}")


def _translate(command: str, words: list[str]) -> list[str]:
    """Return the words with former options in their new form, and print a note about each."""
    from dgm.cli.commands import RENAMED, SETTINGS

    translated = list[str]()
    settings, names = SETTINGS.get(command, {}), RENAMED.get(command, {})
    while words:
        word, *words = words
        option, equals, value = word.partition("=")
        if option in settings and (equals or words):
            if not equals:
                value, *words = words
            sys.stderr.write(f"note: {option} is now --set {settings[option]}=…\n")
            translated += ["--set", f"{settings[option]}={value}"]
        elif option in names:
            sys.stderr.write(f"note: {option} is now {names[option]}\n")
            translated.append(names[option] + equals + value)
        elif option == "--":
            return [*translated, word, *words]
        else:
            translated.append(word)
    return translated


def _find_command(words: list[str]) -> "CommandSpec":
    """Return the command that the words begin with; its name may have two words.

    Raises:
        UserError: there is none.
    """
    from dgm.cli.commands import COMMANDS, GROUPS, MOVED
    from dgm.errors import UserError

    names = (" ".join(words[:2]), words[0])
    for name in names:
        if name in COMMANDS:
            return COMMANDS[name]
    for name in names:
        if name in MOVED:
            raise UserError(f"'dgm {name}' is now '{MOVED[name]}'")
    import difflib

    name = names[0] if words[0] in GROUPS else words[0]
    near = difflib.get_close_matches(name, COMMANDS, 1)
    hint = f"did you mean '{near[0]}'?" if near else "see dgm --help"
    raise UserError(f"there is no command '{name}' ({hint})")
