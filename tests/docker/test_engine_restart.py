"""The engine dies in mid-run and comes back: no agent is blamed, nothing is lost, the search goes on by itself.

It stops the machine's own engine, so it only runs where it is told that it may (``DGM_MAY_RESTART_ENGINE=1``).
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.sandbox, pytest.mark.slow]

EVALUATIONS = 12


def engine_answers() -> bool:
    done = subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False)
    return done.returncode == 0


def engines() -> list[int]:
    listed = subprocess.run(["pgrep", "-x", "dockerd"], capture_output=True, text=True, check=False).stdout
    return [int(word) for word in listed.split()]


def wait_until(holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.2)


def verdicts(run) -> list[str]:
    try:
        with sqlite3.connect(f"file:{run / 'run.db'}?mode=ro", uri=True) as connection:
            return [row[0] for row in connection.execute("select verdict from evaluations")]
    except sqlite3.OperationalError:
        return []


@pytest.fixture
def restartable():
    if os.environ.get("DGM_MAY_RESTART_ENGINE") != "1":
        pytest.skip("this would stop the machine's engine; allow it with DGM_MAY_RESTART_ENGINE=1")
    if not shutil.which("dockerd") or not engines() or os.geteuid() != 0:
        pytest.skip("the engine of this machine cannot be stopped and started from here")
    yield
    if not engine_answers():
        start_engine()


def start_engine():
    subprocess.run(["rm", "-f", "/var/run/docker.pid"], check=False)
    with Path("/var/log/dockerd.log").open("ab") as log:
        subprocess.Popen(
            ["dockerd"], stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
        )
    wait_until(engine_answers, 60)


def test_a_search_outlives_its_engine(restartable, tmp_path):
    environment = {**os.environ, "DGM_ARCHIVE": str(tmp_path)}
    words = [sys.executable, "-m", "dgm", "run", "--model", "offline", "--name", "outage", "--json"]
    process = subprocess.Popen(
        [*words, "--set", "sandbox=docker", "--workers", "2", "--max-evaluations", str(EVALUATIONS)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: len(verdicts(tmp_path / "outage")) >= 2 or process.poll() is not None, 120)
    for engine in engines():
        os.kill(engine, signal.SIGTERM)
    wait_until(lambda: not engines(), 60)
    time.sleep(3.0)
    start_engine()
    output, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors[-3000:]
    graded = json.loads(output)["evaluations"]
    assert graded["graded"] == EVALUATIONS
    found = verdicts(tmp_path / "outage")
    lost = errors.count("will be performed again")
    assert found.count("invalid") + lost > 0, "the outage was not noticed"
    assert "Traceback" not in errors
