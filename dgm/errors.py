"""The errors of dgm: each says who can act on it.

A ``UserError`` is mended by whoever typed the command, ``Infrastructure`` by trying again, an ``AgentFault``
by nobody: it becomes data (an unresolved or stillborn outcome) at the worker's edge.
"""


class DgmError(Exception):
    """Whatever dgm raises on purpose."""


class UserError(DgmError, ValueError):
    """Wrong input or configuration: one line that says what is wrong, where, and what to do (exit code 2)."""


class Infrastructure(DgmError, OSError):
    """The world around the agents failed (engine, disk, network): retryable, and never an agent's fault."""


class ProviderRefuses(Infrastructure):
    """A provider of models takes nothing from us any more (wrong key, no credit): a person has to mend that."""


class ProviderWaits(Infrastructure):
    """A provider asks for a wait that is too long for a call to be held open.

    Attributes:
        until: Unix time at which it may be asked again.
    """

    def __init__(self, message: str, until: float) -> None:
        super().__init__(message)
        self.until = until


class ArchiveCorrupt(DgmError, ValueError):
    """A run on disk is not what dgm wrote; the message names the file and the first thing wrong."""


class ArchiveBusy(UserError):
    """Another process is writing this run; the message names its pid and host."""


class BudgetExhausted(DgmError):
    """A budget of the run is spent."""


class PluginFault(DgmError):
    """An installed plug-in does not keep what its protocol promises; the message names it."""


class AgentFault(DgmError):
    """An agent left something that cannot be used (too large, not a file tree, …): data, not an incident.

    Attributes:
        stage: where it showed, in a word (``patch``, ``check``, ``size`` …).
        output: what the agent's program had printed by then, where it ran.
    """

    def __init__(self, stage: str, message: str, output: bytes = b"") -> None:
        super().__init__(message)
        self.stage = stage
        self.output = output
