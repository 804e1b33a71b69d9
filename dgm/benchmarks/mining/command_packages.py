"""Packages for a command of the user's: what ``--setup`` leaves; without it none but those of the sandbox."""

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dgm.archive.snapshots import write_folder
from dgm.benchmarks.environments import PACKAGES
from dgm.benchmarks.mining.cargo_packages import keep_packages, last_line, run_command
from dgm.benchmarks.mining.epochs import Epochs
from dgm.benchmarks.mining.history import Unit
from dgm.benchmarks.mining.packages import Installed
from dgm.domain import Snapshot


class CommandEpochs(Epochs):
    """One environment for the whole history: nothing that a commit declares is read."""

    def know_tests(self, units: Sequence[Unit]) -> None:
        """Do nothing: no packages are looked for."""

    def _digest(self, files: Snapshot) -> str:
        del files
        return "command"

    def _install(self, files: Snapshot, day: str) -> Installed:
        del files, day
        return Installed(keep_packages(None, (), self._python.machine, self._suite), "")

    def _run_setup(self, files: Snapshot) -> Installed:
        with TemporaryDirectory(prefix="dgm-mine-") as folder:
            checkout, packages = Path(folder, "checkout"), Path(folder, PACKAGES)
            write_folder(files, checkout)
            packages.mkdir()
            run_command(self._setup, checkout, packages, find_cause=self._find_cause)
            requirements = self._tidy(packages)
            return Installed(
                keep_packages(packages, requirements, self._python.machine, self._suite), "by --setup"
            )

    def _find_cause(self, said: str) -> str:
        """Return the line of a failed command's output that tells why; empty if none does."""
        return last_line(said)

    def _tidy(self, packages: Path) -> Sequence[str]:
        """Remove what no test needs, and return the packages with their versions, for people."""
        del packages
        return ()
