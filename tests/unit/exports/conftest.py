"""Runs that are exported: a small one that was paid for, and one in which every text is hostile."""

import os
import subprocess

import pytest

from dgm.archive.run import Run
from tests.support.runs.hostile import hostile_folder
from tests.support.runs.paid import small

__all__ = ["hostile_folder"]


@pytest.fixture(scope="module")
def paid_folder(tmp_path_factory):
    """The folder of a run of three agents, the last a crossover, with 20 calls; closed."""
    made = small(tmp_path_factory.mktemp("paid") / "paid")
    made.run.close()
    return made.run.folder


@pytest.fixture(params=["paid_folder", "hostile_folder"])
def run(request):
    """Each of the two, open to read."""
    with Run.open(request.getfixturevalue(request.param)) as opened:
        yield opened


@pytest.fixture
def agent(run):
    """The youngest agent."""
    return run.tree.agents[-1]


def git(folder, *words):
    """Return what git prints, without the settings of the user who runs the tests."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    words = ("-c", "user.name=A", "-c", "user.email=a@example.org", *words)
    done = subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
