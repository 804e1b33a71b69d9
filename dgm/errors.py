"""The errors of dgm, by who can act on them.

The person who typed the command fixes a ``UserError``. A retry fixes ``Infrastructure``. An ``AgentFault`` is not
fixed: at the worker's edge it becomes data (an unresolved or stillborn outcome).
"""

from dataclasses import dataclass, field
from shlex import quote


class DgmError(Exception):
    """The base class of all errors that dgm raises on purpose."""


@dataclass(frozen=True, slots=True)
class Hint:
    """The call that helps after an error; each front end writes it in its own words.

    ``Hint("to continue", "resume", ("first",), {"max_usd": 20})`` is ``dgm resume first --max-usd 20`` on the command
    line and ``dgm.open('first').resume(max_usd=20)`` in Python.
    """

    purpose: str
    command: str
    """Name of the command and of its Python function; of a method of a run if it is in ``METHODS``."""
    arguments: tuple[str, ...] = ()
    options: dict[str, object] = field(default_factory=dict)
    """Parameter → value; ``True`` is a flag, and ``...`` stands for a value that the user chooses."""

    def in_shell(self) -> str:
        """Return the hint for a user of the command line."""
        words = ["dgm", self.command, *map(quote, self.arguments)]
        for name, value in self.options.items():
            words.append(option_name(name))
            words += (
                []
                if value is True
                else [name.rpartition("_")[2].upper() if value is ... else quote(str(value))]
            )
        return f"{self.purpose}: {' '.join(words)}"

    def in_python(self) -> str:
        """Return the hint for a program."""
        options = [f"{name}={'...' if value is ... else repr(value)}" for name, value in self.options.items()]
        name, arguments = (
            self.command.replace(" ", "_").replace("run", "evolve"),
            [*map(repr, self.arguments)],
        )
        if self.command in METHODS and arguments:
            return f"{self.purpose}: dgm.open({arguments[0]}).{name}({', '.join([*arguments[1:], *options])})"
        return f"{self.purpose}: dgm.{name}({', '.join([*arguments, *options])})"


METHODS = ("resume", "report", "replay", "approve")
"""Commands that are methods of an open run in Python."""


class UserError(DgmError, ValueError):
    """Wrong input or configuration: one line that says what is wrong, where, and what to do (exit code 2).

    ``str`` gives the line in Python's words; the command line prints ``in_shell()``.

    Args:
        problem: what is wrong and where; it names no option and no command.
        argument: the parameter (``max_usd``) or dotted setting (``budget.usd``) at fault; the line begins with it.
        hint: the call that helps.
    """

    def __init__(self, problem: str, *, argument: str = "", hint: Hint | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.argument = argument
        self.hint = hint

    def __str__(self) -> str:
        """Return the line for a program."""
        subject = f"{self.argument}: " if self.argument else ""
        return f"{subject}{self.problem}" + (f"; {self.hint.in_python()}" if self.hint else "")

    def in_shell(self) -> str:
        """Return the line for a user of the command line."""
        name = f"--set {self.argument}" if "." in self.argument else option_name(self.argument)
        subject = f"{name}: " if self.argument else ""
        return f"{subject}{self.problem}" + (f"; {self.hint.in_shell()}" if self.hint else "")


def option_name(parameter: str) -> str:
    """Return the option of a parameter: ``max_usd`` → ``--max-usd``; that of ``settings`` is ``--set``."""
    return "--set" if parameter == "settings" else "--" + parameter.replace("_", "-")


class Infrastructure(DgmError, OSError):
    """A failure outside the agents (engine, disk, network): retryable, and never an agent's fault."""


class StoodStill(Infrastructure):
    """Work failed while dgm itself was stopped or suspended (``dgm.processes``); nothing is wrong otherwise."""


class ProviderRefuses(Infrastructure):
    """A provider of models refuses all requests (wrong key, no credit) until a person fixes the cause."""


class ProviderWaits(Infrastructure):
    """A provider asks for a wait that is too long to keep a call open.

    Attributes:
        until: Unix time from which the provider may be asked again.
    """

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message)
        self.until = until


class ArchiveHeld(Infrastructure):
    """Another program holds the database of a run, which no model or sandbox is to blame for; nothing was written."""


class ArchiveCorrupt(DgmError, ValueError):
    """A run on disk differs from dgm's format; the message names the file and the first fault."""


class ArchiveBusy(UserError):
    """Another process is writing this run; the message names its pid and host."""


class BudgetExhausted(DgmError):
    """A budget of the run is spent."""


class PluginFault(DgmError):
    """An installed plug-in violates its protocol; the message names it."""


class AgentFault(DgmError):
    """An agent left something unusable (too large, not a file tree, …): data, not an incident.

    Attributes:
        stage: the step that found it, in a word (``patch``, ``check``, ``size`` …).
        output: the output of the agent's program so far, if it ran.
        cause: same as in ``Stillborn``.
    """

    def __init__(self, stage: str, message: str, output: bytes = b"", cause: str = "") -> None:
        super().__init__(message)
        self.stage = stage
        self.output = output
        self.cause = cause

    def __reduce__(self) -> tuple[type["AgentFault"], tuple[str, str, bytes, str]]:
        """Let it cross between processes."""
        return AgentFault, (self.stage, str(self), self.output, self.cause)
