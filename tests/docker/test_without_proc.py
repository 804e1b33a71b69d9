"""A machine without ``/proc``, as a Mac: dgm is started in a mount namespace in which the folder is empty."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from dgm.sandboxes.choose import choose
from tests.support.small_search import EVALUATIONS, perform_search

pytestmark = [pytest.mark.docker, pytest.mark.sandbox, pytest.mark.slow]

HIDE = 'mount --make-rprivate / && mount -t tmpfs none /proc && exec "$@"'
LOOK = """
import sys
from pathlib import Path
from dgm.archive.run import writer
print(writer(Path(sys.argv[1])))
"""
HOLD = """
import sys
from pathlib import Path
from dgm.archive.lock import WriterLock
held = WriterLock(Path(sys.argv[1], "run.lock"))
print("held", flush=True)
sys.stdin.read()
"""
WITHOUT_PROC = ["unshare", "--mount", "sh", "-c", HIDE, "hide"]


@pytest.fixture(scope="module")
def start():
    """The command that starts a program without ``/proc``."""
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("NOT RUN: only root can hide /proc in a mount namespace of its own")
    choose("docker").build("python")
    seen = subprocess.run([*WITHOUT_PROC, "ls", "/proc"], capture_output=True, check=True)
    assert seen.stdout == b""
    return WITHOUT_PROC


def test_a_search_and_the_look_at_it(start, tmp_path):
    evaluations, calls = perform_search(tmp_path, "bare", start)
    assert (evaluations["graded"], evaluations["invalid"]) == (EVALUATIONS, 0)
    assert calls > 0
    words = [*start, sys.executable, "-m", "dgm", "status", "--json"]
    environment = {**os.environ, "DGM_ARCHIVE": str(tmp_path)}
    listed = subprocess.run(words, capture_output=True, env=environment, cwd=tmp_path, check=True)
    (row,) = json.loads(listed.stdout)["runs"]
    assert (row["run"], row["state"], row["pid"]) == ("bare", "goal reached", None)


def test_a_writer_is_known_to_live_and_to_be_dead(start, tmp_path):
    look = [*start, sys.executable, "-c", LOOK, str(tmp_path)]
    hold = [*start, sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        assert b"pid=" in subprocess.run(look, capture_output=True, check=True).stdout
        holder.kill()
        holder.wait()
    assert subprocess.run(look, capture_output=True, check=True).stdout == b"None\n"
