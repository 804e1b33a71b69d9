"""A small real search, made once, and the program as a user runs it."""

import fcntl
import json
import os
import shutil

import pytest

from tests.support.program import OFFLINE, Program, copy_of_run
from tests.support.warm import WarmStart


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Skip what runs in bubblewrap where that is not installed."""
    marks = {mark.name for mark in item.iter_markers()}
    if "sandbox" in marks and "docker" not in marks and not shutil.which("bwrap"):
        pytest.skip("bubblewrap is not installed")


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder that all test processes of a session share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def dgm(tmp_path_factory, shared):
    """The program."""
    started = shared / "started"
    started.mkdir(exist_ok=True)
    with WarmStart() as warm:
        yield Program(tmp_path_factory.mktemp("archive"), warm, started)


@pytest.fixture(scope="session", params=[pytest.param("docker", marks=pytest.mark.docker), "bubblewrap"])
def engine_name(request):
    """Each engine in turn."""
    return request.param


EVALUATIONS = 8
SMALL = ("run", *OFFLINE, "--seed", 3, "--workers", 1, "--max-evaluations", EVALUATIONS)
"""The search that most tests look at."""


@pytest.fixture(scope="session")
def searched(dgm, shared):
    """A finished run of ``EVALUATIONS`` in bubblewrap; made by the first of several test processes that wants it."""
    with (shared / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "said.json").exists():
            said = dgm.json(*SMALL, "--name", "small")
            copy_of_run(dgm.archive / "small", shared / "small")
            (shared / "said.json").write_text(json.dumps(said))
    if not (dgm.archive / "small").exists():
        copy_of_run(shared / "small", dgm.archive / "small")
    return json.loads((shared / "said.json").read_text())
