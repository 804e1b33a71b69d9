"""Agents as documents from a program."""

import json

import pytest

import dgm
from dgm.errors import UserError
from tests.support.runs.made import make_run

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An archive with one run."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return make_run(tmp_path / "archive" / "made", verdicts=["+-", "++"])


def test_an_agent_is_a_document(folder):
    with dgm.open("made") as run:
        record = run.agents[1].record()
        assert (record["id"], record["parents"], len(record["evaluations"])) == (1, [0], 2)
        json.dumps(record)
        turns = run.agents[1].transcript("task-0")
        assert (turns["verdict"], turns["attempt"], turns["turns"]) == ("resolved", 1, [])
        with pytest.raises(UserError, match=r"^transcript 'task-9': agent 1 has no verdict"):
            run.agents[1].transcript("task-9")
        with pytest.raises(UserError, match=r"^attempt 2: agent 1 has no such attempt"):
            run.agents[1].transcript("task-0", 2)
