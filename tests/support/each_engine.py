"""Engines by their names, for tests that run in each; where one is not to be had, they are skipped aloud."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from dgm.benchmarks.suites import SuiteBenchmark
from dgm.errors import UserError
from dgm.sandboxes.choose import choose
from tests.support.small_history import make_history

EVERYWHERE = "/usr/bin:/usr/local/bin"
"""Folders of programs that bubblewrap shows."""


def find_engine(name, *programs):
    """Returns an engine; bubblewrap needs some programs of this machine."""
    try:
        engine = choose(name)
    except UserError as error:
        if os.environ.get("DGM_REQUIRE_DOCKER") == "1":
            pytest.fail(f"must run with {name}: {error}")
        pytest.skip(f"NOT RUN with {name}: {error}")
    missing = [each for each in programs if not shutil.which(each, path=EVERYWHERE)]
    if name == "bubblewrap" and missing:
        pytest.skip(f"NOT RUN with bubblewrap: {missing[0]} is not installed for all")
    return engine


def mine_steps(folder, steps, engine, *options):
    """Mines a small history; returns the suite, and the command's report."""
    repo = make_history(folder / "repo", steps)
    settings = ("--set", "mining.holdout=0", "--set", f"sandbox={engine.name}")
    words = ["benchmark", "mine", str(repo), "--out", str(folder / "suite"), *settings, *options]
    command = [sys.executable, "-m", "dgm", *words, "--json"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return SuiteBenchmark(folder / "suite", engine), json.loads(done.stdout)
