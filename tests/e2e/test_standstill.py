"""A search whose process is stopped for a while, and one that is the first process of a container."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from tests.support.program import OFFLINE, PATIENCE_S

pytestmark = [pytest.mark.sampled, pytest.mark.sandbox, pytest.mark.slow]

TOML = '[agent]\ncommand = ["python3", "agent.py"]\ncheck = ["true"]\neditor = "solid"\n'
AGENT = """
import json, os, sys, time, urllib.request
job = json.load(open(sys.argv[1]))
for number in range(5):
    body = {"model": job["model"], "messages": [{"role": "user", "content": f"question {number}"}]}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    urllib.request.urlopen(urllib.request.Request(address, json.dumps(body).encode(), headers)).read()
    time.sleep(0.3)
"""


@pytest.fixture
def words(tmp_path):
    """The words of a search of one evaluation; its agent asks its model five times."""
    agent = tmp_path / "asks"
    agent.mkdir()
    (agent / "agent.toml").write_text(TOML)
    (agent / "agent.py").write_text(AGENT)
    options = [*OFFLINE, "--name", "it", "--agent", str(agent)]
    return [
        "run",
        *options,
        "--max-evaluations",
        "1",
        "--set",
        "budget.agents=1",
        "--set",
        "limits.solve_s=4",
    ]


def bodies(folder, kind):
    """Return the bodies of the events of a kind so far."""
    try:
        with sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True) as connection:
            rows = connection.execute("SELECT body FROM events WHERE kind = ?", (kind,)).fetchall()
    except sqlite3.OperationalError:
        return []
    return [json.loads(row[0]) for row in rows]


def test_no_agent_is_blamed_for_time_in_which_dgm_was_stopped(words, tmp_path):
    run = tmp_path / "it"
    process = subprocess.Popen(
        [sys.executable, "-m", "dgm", *words], env={**os.environ, "DGM_ARCHIVE": str(tmp_path)}
    )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not bodies(run, "model_called"):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGSTOP)
        time.sleep(8)
        process.send_signal(signal.SIGCONT)
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    lost = bodies(run, "action_lost")
    assert "dgm itself stood still" in lost[0]["reason"]
    assert len(bodies(run, "task_graded")) == 1


def test_the_first_process_of_a_container_waits_for_what_sandboxes_leave(words, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root makes a process namespace")
    count = "import subprocess; print(subprocess.run(['ps', '-eo', 'stat='], stdout=-1).stdout.count(b'Z'))"
    program = f"import sys; from dgm.cli.main import main\ntry: main({words!r})\nfinally: exec({count!r})"
    done = subprocess.run(
        ["unshare", "-pf", "--mount-proc", sys.executable, "-c", program],
        env={**os.environ, "DGM_ARCHIVE": str(tmp_path)},
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    # Beside those of a search's sandboxes, the proof that bubblewrap works leaves one.
    assert int(done.stdout.split()[-1]) <= 2
