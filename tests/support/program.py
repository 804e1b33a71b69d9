"""The ``dgm`` command as a user starts it, with an archive folder of its own."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.warm import WarmStart

OFFLINE = ("--model", "offline", "--set", "sandbox=bubblewrap")
"""Words of a search that needs neither a provider nor an engine."""
PATIENCE_S = 900
"""Of whoever waits for a command: longer than any takes, however busy the machine."""


def without_keys(environment):
    """The environment without the keys of whoever runs the tests."""
    return {name: value for name, value in environment.items() if not name.endswith("_API_KEY")}


@dataclass(frozen=True)
class Program:
    """The ``dgm`` command with an archive folder of its own."""

    archive: object
    warm: WarmStart
    started: Path
    """A folder with a file for each command that was a process from its first import on, as each is the first time that
    it is performed and the first time that it is refused."""
    environment: dict = field(default_factory=dict)

    @property
    def variables(self):
        """The whole environment of a command."""
        return {**without_keys(os.environ), "DGM_ARCHIVE": str(self.archive), **self.environment}

    def __call__(self, *words, code=0, stdin="", cwd=None, cold=False):
        """The command's end; ``cold``: as a process from its first import on, with hashes of its own."""
        words = [*map(str, words)]
        begun = self.started / (f"{words[0]}, refused" if code == 2 else words[0])
        if not cold and begun.exists() and self.warm.fits(self.variables):
            done = self.warm(words, self.variables, said=stdin, cwd=cwd, timeout_s=PATIENCE_S)
        else:
            begun.touch()
            done = self._start(words, stdin, cwd)
        assert done.returncode == code, (
            f"exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )
        assert "Traceback" not in done.stderr
        return done

    def _start(self, words, stdin, cwd):
        return subprocess.run(
            [sys.executable, "-m", "dgm", *words],
            env=self.variables,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            cwd=cwd,
            check=False,
        )

    def json(self, *words, code=0):
        """The one JSON document on stdout."""
        return json.loads(self(*words, "--json", code=code).stdout)


def copy_of_run(run: Path, copy: Path) -> None:
    """Copies a run that no process writes; its log as SQLite copies it, for a reader may hold files beside it yet."""
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("run.db*"))
    log = sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True)
    with contextlib.closing(log), contextlib.closing(sqlite3.connect(copy / "run.db")) as twin:
        log.backup(twin)
