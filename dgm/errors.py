"""The errors of dgm, by who can act on them.

The person who typed the command fixes a ``UserError``. A retry fixes ``Infrastructure``. An ``AgentFault`` is not
fixed: at the worker's edge it becomes data (an unresolved or stillborn outcome).
"""


class DgmError(Exception):
    """The base class of all errors that dgm raises on purpose."""


class UserError(DgmError, ValueError):
    """Wrong input or configuration: one line that says what is wrong, where, and what to do (exit code 2)."""


class Infrastructure(DgmError, OSError):
    """A failure outside the agents (engine, disk, network): retryable, and never an agent's fault."""


class StoodStill(Infrastructure):
    """Work failed while dgm itself was stopped or suspended (``dgm.standstill``); nothing is wrong otherwise."""


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
    """

    def __init__(self, stage: str, message: str, output: bytes = b"") -> None:
        super().__init__(message)
        self.stage = stage
        self.output = output

    def __reduce__(self) -> tuple[type["AgentFault"], tuple[str, str, bytes]]:
        """Let it cross between processes."""
        return AgentFault, (self.stage, str(self), self.output)
