"""A small real search, made once, and a way to run the program as a user does."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field

import pytest


def without_keys(environment):
    """The environment without the keys of whoever runs the tests."""
    return {name: value for name, value in environment.items() if not name.endswith("_API_KEY")}


@dataclass(frozen=True)
class Program:
    """The ``dgm`` command with an archive folder of its own."""

    archive: object
    environment: dict = field(default_factory=dict)

    @property
    def variables(self):
        """The whole environment of a command."""
        return {**without_keys(os.environ), "DGM_ARCHIVE": str(self.archive), **self.environment}

    def __call__(self, *words, code=0, stdin="", cwd=None):
        done = subprocess.run(
            [sys.executable, "-m", "dgm", *map(str, words)],
            env=self.variables,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=240,
            cwd=cwd,
            check=False,
        )
        assert done.returncode == code, (
            f"exit {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        )
        assert "Traceback" not in done.stderr
        return done

    def json(self, *words, code=0):
        """The one JSON document on stdout."""
        return json.loads(self(*words, "--json", code=code).stdout)


@pytest.fixture(scope="session")
def dgm(tmp_path_factory):
    """The program."""
    return Program(tmp_path_factory.mktemp("archive"))


@pytest.fixture(scope="session")
def searched(dgm):
    """A finished run of 14 evaluations in bubblewrap."""
    if not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")
    return dgm.json(
        "run",
        "--model",
        "offline",
        "--name",
        "small",
        "--sandbox",
        "bubblewrap",
        "--max-evaluations",
        14,
        "--seed",
        3,
    )
