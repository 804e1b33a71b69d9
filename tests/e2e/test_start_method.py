"""dgm's processes are all started by ``spawn`` or as programs: macOS's way, and safe where threads run."""

import subprocess
import sys

import pytest

from tests.support.program import OFFLINE

pytestmark = [pytest.mark.sampled, pytest.mark.starts_processes, pytest.mark.sandbox]

PROGRAM = """
import multiprocessing
import sys


def refuse(event, _):
    if event in ("os.fork", "os.forkpty"):
        raise RuntimeError(f"{event}: a copy of this process, threads and locks included")


if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    sys.addaudithook(refuse)
    from dgm.cli.main import main

    main()
"""


@pytest.fixture
def perform(tmp_path, monkeypatch):
    """Runs dgm in a process that cannot fork."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)

    def perform(*words):
        command = [sys.executable, "program.py", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    return perform


def test_trials_on_several_cores(perform):
    words = ["--policy", "random", "--family", "drift", "--worlds", "2", "--budget", "20"]
    assert "random" in perform("simulate", *words)


def test_a_search(perform):
    words = [*OFFLINE, "--max-evaluations", "1", "--json"]
    assert '"graded": 1' in perform("run", *words)
