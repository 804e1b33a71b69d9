"""Sandboxes in which package managers run."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from dgm.domain import Snapshot
from dgm.errors import UserError


class BuildError(UserError):
    """What an agent or a task needs cannot be installed or built, or the build left what cannot be used."""


@dataclass(frozen=True, slots=True)
class BuildRun:
    """The end of one command of a build."""

    exit_code: int
    """Exit code as in a shell; 124 if it took too long."""
    output: str
    """Stdout and stderr, merged."""
    refused: str = ""
    """What it asked for and did not get, in one line; empty if there is nothing."""

    def explain(self, reason: str) -> str:
        """Return a reason for its failure, with what it was refused."""
        return "; ".join(filter(None, [reason, self.refused]))


class BuildSandbox(Protocol):
    """A sandbox that reaches package indexes, and knows nothing of the user's variables and files.

    All methods raise ``Infrastructure`` if the sandbox failed.
    """

    folder: str
    """Folder that a build may fill."""

    async def put(self, files: Snapshot, name: str) -> None:
        """Write files below the subfolder ``name``; raise ``BuildError`` if they do not fit."""
        ...

    async def run(
        self, command: Sequence[str], *, name: str, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> BuildRun:
        """Run a command in the subfolder ``name``, which is made if it is missing.

        Raises:
            BuildError: it cannot be started.
            Infrastructure: it failed and a package index could not be reached.
        """
        ...

    async def fetch(self, name: str, target: Path) -> None:
        """Copy the subfolder ``name`` to a new folder: its files, and the links that stay within it.

        Raises:
            BuildError: it is missing, or too large.
        """
        ...


class Builder(Protocol):
    """Opens sandboxes for builds."""

    def open(self, *, public: bool = False) -> AbstractAsyncContextManager[BuildSandbox]:
        """Return a fresh sandbox; ``public``: it reaches all public addresses, for a command that the user typed."""
        ...
