"""An engine that sees other files than dgm, as Docker Desktop's or that of a host whose container dgm runs in.

dockerd is started in a mount namespace of its own, in which the folders of dgm, of its archive and of its caches are
empty.
"""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from dgm.sandboxes import recipes
from dgm.sandboxes.choose import choose
from tests.support.small_search import perform_search

pytestmark = [pytest.mark.docker, pytest.mark.sandbox, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
DAEMON = """
mount --make-rprivate / && for folder in /tmp "$HOME" "$3"; do mount -t tmpfs none "$folder" || exit 1; done
exec dockerd --data-root "$1/data" --exec-root "$2/exec" --pidfile "$2/pid" -H "unix://$2/docker.sock" \
    --bridge=none --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false
"""


def ended(process, seconds):
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


@pytest.fixture(scope="module")
def elsewhere():
    """The address of such an engine, which has the image of the recipe ``python``."""
    if os.geteuid() != 0 or not shutil.which("dockerd") or not shutil.which("unshare"):
        pytest.skip("NOT RUN: only root can start an engine in a mount namespace of its own")
    choose("docker").build("python")
    data = Path(tempfile.mkdtemp(prefix="dgm-elsewhere-", dir="/var/lib"))
    # Below /run, which the engine sees as dgm does: a socket is all that they share.
    door = Path(tempfile.mkdtemp(prefix="dgm-elsewhere-", dir="/run"))
    words = ["unshare", "-m", "sh", "-c", DAEMON, "daemon", str(data), str(door), str(ROOT)]
    with (data / "log").open("wb") as log, subprocess.Popen(words, stdout=log, stderr=log) as daemon:
        try:
            address = f"unix://{door}/docker.sock"
            docker = ["docker", "-H", address]
            ends = time.monotonic() + 60
            while subprocess.run([*docker, "version"], capture_output=True, check=False).returncode:
                if daemon.poll() is not None or time.monotonic() > ends:
                    pytest.skip(f"NOT RUN: {(data / 'log').read_text()[-300:]}")
                time.sleep(0.2)
            tag = recipes.load("python").tag
            with subprocess.Popen(["docker", "save", tag], stdout=subprocess.PIPE) as saved:
                subprocess.run([*docker, "load"], stdin=saved.stdout, capture_output=True, check=True)
            yield address
        finally:
            daemon.terminate()
            if not ended(daemon, 30):
                daemon.kill()
            shutil.rmtree(data, ignore_errors=True)
            shutil.rmtree(door, ignore_errors=True)


def test_its_verdicts_are_those_of_an_engine_that_sees_the_same_files(elsewhere, tmp_path):
    (tmp_path / "seen").write_text("by dgm")
    look = ["docker", "-H", elsewhere, "run", "--rm", "--network", "none", "-v", f"{tmp_path}:/here"]
    seen = subprocess.run([*look, recipes.load("python").tag, "ls", "/here"], capture_output=True, check=True)
    assert seen.stdout == b"", "the engine sees dgm's files"
    there = perform_search(tmp_path, "there", DOCKER_HOST=elsewhere)
    assert there == perform_search(tmp_path, "here")
    assert there[1] > 0
