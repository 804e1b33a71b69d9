"""A small real search, made once, and a way to run the program as a user does."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Program:
    """The ``dgm`` command with an archive folder of its own."""

    archive: object

    def __call__(self, *words, code=0, stdin="", cwd=None):
        done = subprocess.run(
            [sys.executable, "-m", "dgm", *map(str, words)],
            env={**os.environ, "DGM_ARCHIVE": str(self.archive)},
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
    return dgm.json("run", "--name", "small", "--sandbox", "bubblewrap", "--max-evaluations", 14, "--seed", 3)
