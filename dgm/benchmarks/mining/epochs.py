"""The environments of a mining: one for each set of declarations that is needed, dated to its commit."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from dgm.archive.snapshots import write_folder
from dgm.benchmarks.environments import Environment, read_environments
from dgm.benchmarks.mining.declarations import name_of, read_declarations
from dgm.benchmarks.mining.history import History, Unit
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.packages import (
    CannotInstall,
    Installed,
    SandboxPython,
    build_environment,
    run_setup,
)
from dgm.domain import Snapshot

MOST_OTHERS = 30
"""Maximum number of test libraries of other times that an environment gets."""


class Epochs:
    """Environments by the digest of what commits declare; blocking, for several threads."""

    def __init__(
        self, history: History, suite: Path, python: SandboxPython, journal: MiningJournal, setup: str = ""
    ) -> None:
        """Keep what environments are built from; ``setup`` is a shell command that builds them instead."""
        self._history = history
        self._suite = suite.absolute()
        self._python = python
        self._journal = journal
        self._setup = setup
        self._locks: dict[str, threading.Lock] = {}
        self._others: tuple[str, ...] = ()
        self.remarks: dict[str, str] = {}

    def know_tests(self, units: Sequence[Unit]) -> None:
        """Learn the test libraries that a history ever named, from evenly spaced commits."""
        step = max(1, len(units) // 12)
        named: Counter[str] = Counter()
        for unit in units[::step]:
            named.update({name_of(one) for one in read_declarations(self._history.files(unit.commit)).tests})
        self._others = tuple(sorted(name for name, _ in named.most_common(MOST_OTHERS)))

    def environment(self, files: Snapshot, day: str) -> Environment:
        """Return the environment for a commit's files; build it if it is missing.

        Args:
            files: the commit's.
            day: its day; packages are not newer where it is the first commit of its declarations that is asked for.

        Raises:
            CannotInstall: it cannot be built.
            UserError: the command of the user's fails.
        """
        digest = self._digest(files)
        with self._locks.setdefault(digest, threading.Lock()):
            key = f"environment {digest}"
            found = self._journal.get(key)
            if found is None or (found["name"] and found["name"] not in self._known()):
                found = self._build(files, day)
                if found["name"] or self._known():
                    # Where nothing was ever installed, the cause may be this machine: no network, no disk.
                    self._journal.put(key, found)
        if not found["name"]:
            raise CannotInstall(found["remark"])
        self.remarks[found["name"]] = found["remark"]
        return self._known()[found["name"]]

    def _known(self) -> Mapping[str, Environment]:
        return read_environments(self._suite)

    def _build(self, files: Snapshot, day: str) -> dict[str, str]:
        try:
            built = self._run_setup(files) if self._setup else self._install(files, day)
        except CannotInstall as error:
            return {"name": "", "remark": str(error)}
        return {"name": built.name, "remark": built.remark}

    def _digest(self, files: Snapshot) -> str:
        return read_declarations(files).digest

    def _install(self, files: Snapshot, day: str) -> Installed:
        declared = read_declarations(files)
        others = [name for name in self._others if name not in {*declared.held, *dict(declared.elsewhere)}]
        try:
            built = build_environment(declared, others, day, self._python, self._suite)
        except CannotInstall as error:
            raise CannotInstall("; ".join(filter(None, [str(error), declared.remark]))) from error
        return Installed(built.name, "; ".join(filter(None, [built.remark, declared.remark])))

    def _run_setup(self, files: Snapshot) -> Installed:
        with TemporaryDirectory(prefix="dgm-mine-") as name:
            write_folder(files, Path(name))
            return run_setup(self._setup, Path(name), read_declarations(files), self._python, self._suite)
