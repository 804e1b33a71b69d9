"""The process that outlives a node's actor."""

import os
import subprocess
import sys
import time

import pytest

from dgm.sandboxes.ray.reaper import start_reaper

_ACTOR = """
import os, sys
from pathlib import Path
from dgm.sandboxes.ray.reaper import start_reaper
pipe = start_reaper("nope", {"dgm.actor": "x"}, Path(sys.argv[1]))
os.kill(os.getpid(), 9)
"""


def wait_for_end(folder):
    ends = time.monotonic() + 60
    while folder.exists():
        assert time.monotonic() < ends
        time.sleep(0.1)


@pytest.mark.starts_processes
def test_it_cleans_up_after_the_end_of_its_actor_and_not_before(tmp_path):
    folder = tmp_path / "node"
    folder.mkdir()
    pipe = start_reaper("nope", {"dgm.actor": "x"}, folder)
    time.sleep(0.5)
    assert folder.exists()
    pipe.close()
    wait_for_end(folder)


@pytest.mark.starts_processes
def test_it_outlives_an_actor_that_is_killed(tmp_path):
    folder = tmp_path / "node"
    folder.mkdir()
    actor = subprocess.run(
        [sys.executable, "-c", _ACTOR, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert actor.returncode == -9
    wait_for_end(folder)
