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


SEES = b"""[agent]
command = ["sh", "-c", "cd ../work/repo && find . -type f -not -path './.git/*' | sort > SEEN"]
check = ["true"]
"""


@pytest.mark.slow
@pytest.mark.starts_processes
@pytest.mark.parametrize("kind", ["plain", "worktree", "sha256", "damaged"])
def test_a_repository_is_listed_without_its_settings(tmp_path, kind):
    seen, repo, ran = tmp_path / "seen.txt", tmp_path / "repo", tmp_path / "ran"
    with create_run(tmp_path / "run", make_config(Settings()), Budget(), ()) as run:
        RunBuilder(run).bear({"agent.toml": Entry(SEES.replace(b"SEEN", str(seen).encode()))})
        write_standalone(run, run.tree.agents[0], tmp_path / "alone")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)

    def git(*words):
        subprocess.run(["git", "-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)

    repo.mkdir()
    git("init", "-q", f"--object-format={'sha256' if kind == 'sha256' else 'sha1'}")
    for name, text in {"a.txt": "a", ".gitignore": "secret\n", "secret": "key", "hidden": "key"}.items():
        (repo / name).write_text(text)
    (tmp_path / "rules").write_text("hidden\n")
    git("config", "core.excludesFile", str(tmp_path / "rules"))
    git("add", "-A")
    git("commit", "-qm", "start")
    if kind == "worktree":
        git("worktree", "add", "-q", tmp_path / "other")
        repo = tmp_path / "other"
        (repo / "hidden").write_text("key")
    for key, value in (("core.untrackedCache", "true"), ("core.fsmonitor", program), ("core.worktree", "/")):
        git("config", key, str(value))
    if kind == "damaged":
        (repo / ".git" / "index").write_text("none")
    words = ["--repo", repo, "--model", "m", "--base-url", "http://127.0.0.1:9", "--unconfined", "do it"]
    done = subprocess.run(
        [sys.executable, tmp_path / "alone" / "run.py", *words], check=False, capture_output=True, text=True
    )
    assert not ran.exists()
    if kind == "damaged":
        assert (done.returncode, done.stderr) == (2, f"run.py: {repo}: git cannot read this repository\n")
    else:
        assert seen.read_text().split() == ["./.gitignore", "./a.txt"], done.stderr
