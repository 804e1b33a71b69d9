"""A small real search, made once, and a way to run the program as a user does."""

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.warm import WarmStart

PATIENCE_S = 900
"""Of whoever waits for a command: longer than any takes, however busy the machine."""
COLD = {"run", "resume", "simulate"}
"""What searches is always a process from its first import on: with hashes and processes of its own."""


def without_keys(environment):
    """The environment without the keys of whoever runs the tests."""
    return {name: value for name, value in environment.items() if not name.endswith("_API_KEY")}


@dataclass(frozen=True)
class Program:
    """The ``dgm`` command with an archive folder of its own."""

    archive: object
    warm: WarmStart
    environment: dict = field(default_factory=dict)
    started: set = field(default_factory=set)
    """Commands that were processes from their first import on, as each is the first time."""

    @property
    def variables(self):
        """The whole environment of a command."""
        return {**without_keys(os.environ), "DGM_ARCHIVE": str(self.archive), **self.environment}

    def __call__(self, *words, code=0, stdin="", cwd=None):
        words = [*map(str, words)]
        imported = words[0] in self.started and self.warm.fits(self.variables)
        if imported and (code == 2 or words[0] not in COLD):
            done = self.warm(words, self.variables, said=stdin, cwd=cwd, timeout_s=PATIENCE_S)
        else:
            self.started.add(words[0])
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


@pytest.fixture(scope="session")
def dgm(tmp_path_factory):
    """The program."""
    with WarmStart() as warm:
        yield Program(tmp_path_factory.mktemp("archive"), warm)


EVALUATIONS = 8
SMALL = (
    "run",
    "--model",
    "offline",
    "--sandbox",
    "bubblewrap",
    "--seed",
    3,
    "--workers",
    1,
    "--max-evaluations",
    EVALUATIONS,
)
"""The search that most tests look at."""


def copy_of_run(run: Path, copy: Path) -> None:
    """Copies a run that no process writes; its log as SQLite copies it, for a reader may hold files beside it yet."""
    shutil.copytree(run, copy, ignore=shutil.ignore_patterns("events.db*"))
    log = sqlite3.connect(f"file:{run / 'events.db'}?mode=ro", uri=True)
    with contextlib.closing(log), contextlib.closing(sqlite3.connect(copy / "events.db")) as twin:
        log.backup(twin)


@pytest.fixture(scope="session")
def searched(dgm, tmp_path_factory):
    """A finished run of ``EVALUATIONS`` in bubblewrap; made by the first of several test processes that wants it."""
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    several = "PYTEST_XDIST_WORKER" in os.environ
    shared = (
        tmp_path_factory.getbasetemp().parent / "searched" if several else tmp_path_factory.mktemp("searched")
    )
    shared.mkdir(exist_ok=True)
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "said.json").exists():
            said = dgm.json(*SMALL, "--name", "small")
            copy_of_run(dgm.archive / "small", shared / "small")
            (shared / "said.json").write_text(json.dumps(said))
    if not (dgm.archive / "small").exists():
        copy_of_run(shared / "small", dgm.archive / "small")
    return json.loads((shared / "said.json").read_text())
