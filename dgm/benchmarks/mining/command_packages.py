"""Packages for a command of the user's: what ``--setup`` leaves; without it none but those of the sandbox."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from dgm.benchmarks.mining.cargo_packages import keep_files
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.mining.packages import Installed
from dgm.domain import Snapshot


class CommandEpochs(Epochs):
    """One environment for the whole history: nothing that a commit declares is read."""

    hint = ""

    def know_tests(self, units: Sequence[Unit]) -> None:
        """Do nothing: no packages are looked for."""

    def _digest(self, files: Snapshot) -> str:
        del files
        return "command"

    async def _install(self, files: Snapshot, day: str) -> Installed:
        del files, day
        return Installed(keep_files(None, (), self._python.machine, self._suite), "")

    def _setup_variables(self, packages: str) -> Mapping[str, str]:
        del packages
        return {}

    def _keep(self, packages: Path, files: Snapshot) -> str:
        del files
        return keep_files(packages, self._tidy(packages), self._python.machine, self._suite)

    def _tidy(self, packages: Path) -> Sequence[str]:
        """Remove what no test needs, and return the packages with their versions, for people."""
        del packages
        return ()
