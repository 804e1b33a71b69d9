"""The environments of a mining: one for each set of declarations that is needed, dated to its commit."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from dgm.benchmarks.environments import PACKAGES, Environment, read_environments
from dgm.benchmarks.mining.declarations import name_of, read_declarations
from dgm.benchmarks.mining.history import History, Unit
from dgm.benchmarks.mining.journal import MiningJournal
from dgm.benchmarks.mining.packages import (
    Installed,
    SandboxPython,
    build_environment,
    draft_folder,
    keep_packages,
)
from dgm.benchmarks.mining.setup_command import last_line, run_setup
from dgm.benchmarks.mining.stored_environments import CannotInstall
from dgm.domain import Snapshot
from dgm.protocols import Builder, BuildError

MOST_OTHERS = 30
"""Maximum number of test libraries of other times that an environment gets."""


class Epochs:
    """Environments by the digest of what commits declare.

    Attributes:
        inner: subfolder of the packages that the user's command fills.
        hint: advice where the user's command leaves nothing.
    """

    inner = ""
    hint = "; let it install there: uv pip install --target …"

    def __init__(
        self,
        history: History,
        suite: Path,
        python: SandboxPython,
        journal: MiningJournal,
        builder: Builder,
        setup: str = "",
    ) -> None:
        """Keep what environments are built from; ``setup`` is a shell command that builds them instead."""
        self._history = history
        self._suite = suite.absolute()
        self._python = python
        self._journal = journal
        self._builder = builder
        self._setup = setup
        self._locks: dict[str, asyncio.Lock] = {}
        self._others: tuple[str, ...] = ()
        self.remarks: dict[str, str] = {}

    def know_tests(self, units: Sequence[Unit]) -> None:
        """Learn the test libraries that a history ever named, from evenly spaced commits; blocks."""
        step = max(1, len(units) // 12)
        named: Counter[str] = Counter()
        for unit in units[::step]:
            named.update({name_of(one) for one in read_declarations(self._history.files(unit.commit)).tests})
        self._others = tuple(sorted(name for name, _ in named.most_common(MOST_OTHERS)))

    async def environment(self, files: Snapshot, day: str) -> Environment:
        """Return the environment for a commit's files; build it if it is missing.

        Args:
            files: the commit's.
            day: its day; packages are not newer where it is the first commit of its declarations that is asked for.

        Raises:
            CannotInstall: it cannot be built.
            UserError: the command of the user's fails.
            Infrastructure: a sandbox failed.
        """
        digest = await asyncio.to_thread(self._digest, files)
        async with self._locks.setdefault(digest, asyncio.Lock()):
            key = f"environment {digest}"
            found = self._journal.get(key)
            if found is None or (found["name"] and found["name"] not in self._known()):
                found = await self._build(files, day)
                if found["name"] or self._known():
                    # Where nothing was ever installed, the cause may be this machine: no network, no disk.
                    self._journal.put(key, found)
        if not found["name"]:
            raise CannotInstall(found["remark"])
        self.remarks[found["name"]] = found["remark"]
        return self._known()[found["name"]]

    def _known(self) -> Mapping[str, Environment]:
        return read_environments(self._suite)

    async def _build(self, files: Snapshot, day: str) -> dict[str, str]:
        try:
            built = await (self._set_up(files) if self._setup else self._install(files, day))
        except (CannotInstall, BuildError) as error:
            return {"name": "", "remark": str(error)}
        return {"name": built.name, "remark": built.remark}

    async def _set_up(self, files: Snapshot) -> Installed:
        """Let the user's own command fill an environment."""
        with draft_folder(self._suite) as draft:
            packages = draft / PACKAGES
            refused = await run_setup(
                self._setup,
                files,
                self._builder,
                packages,
                inner=self.inner,
                env=self._setup_variables,
                hint=self.hint,
                find_cause=self._find_cause,
            )
            remark = "; ".join(filter(None, ["by --setup", refused]))
            return Installed(await asyncio.to_thread(self._keep, packages, files), remark)

    def _digest(self, files: Snapshot) -> str:
        return read_declarations(files).digest

    async def _install(self, files: Snapshot, day: str) -> Installed:
        declared = read_declarations(files)
        others = [name for name in self._others if name not in {*declared.held, *dict(declared.elsewhere)}]
        try:
            built = await build_environment(declared, others, day, self._python, self._suite, self._builder)
        except CannotInstall as error:
            raise CannotInstall("; ".join(filter(None, [str(error), declared.remark]))) from error
        return Installed(built.name, "; ".join(filter(None, [built.remark, declared.remark])))

    def _setup_variables(self, packages: str) -> Mapping[str, str]:
        """Return the variables of the user's command; ``packages`` is its folder."""
        del packages
        return {"DGM_PYTHON": self._python.version}

    def _find_cause(self, said: str) -> str:
        """Return the line of a failed command's output that tells why; empty if none does."""
        return last_line(said)

    def _keep(self, packages: Path, files: Snapshot) -> str:
        """Give the folder that the user's command left its name, and return it."""
        return keep_packages(packages, read_declarations(files), self._python, self._suite)
