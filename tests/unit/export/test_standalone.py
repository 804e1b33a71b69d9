"""An agent that was exported to run by itself starts as in the search."""

import subprocess
import sys

import pytest

from dgm.config import Settings
from dgm.domain import Budget, Entry
from dgm.export.standalone import write_standalone
from tests.support.runs.builder import RunBuilder, create_run, make_config

TELLS = b"""[agent]
command = ["sh", "-c", "echo $OPENAI_AGENTS_DISABLE_TRACING $DO_NOT_TRACK $MINE > TOLD"]
check = ["true"]
env = {DO_NOT_TRACK = "0", MINE = "a b"}
"""


@pytest.mark.slow
@pytest.mark.starts_processes
def test_reports_to_vendors_are_off_and_its_own_variables_win(tmp_path):
    told, repo = tmp_path / "told.txt", tmp_path / "repo"
    repo.mkdir()
    source = TELLS.replace(b"TOLD", str(told).encode())
    with create_run(tmp_path / "run", make_config(Settings()), Budget(), ()) as run:
        RunBuilder(run).bear({"agent.toml": Entry(source)})
        write_standalone(run, run.tree.agents[0], tmp_path / "alone")
    words = ["--repo", repo, "--model", "m", "--base-url", "http://127.0.0.1:9", "--unconfined", "do it"]
    subprocess.run([sys.executable, tmp_path / "alone" / "run.py", *words], check=False, capture_output=True)
    assert told.read_text() == "1 0 a b\n"
