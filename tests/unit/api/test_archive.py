"""Agents as documents from a program."""

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
        view = run.agents[1].view
        assert (view.agent, view.parents, len(view.evaluations)) == (1, (0,), 2)
        (attempt,) = run.agents[1].attempts("task-0").attempts
        assert (attempt.verdict, attempt.attempt, attempt.transcript.threads) == ("resolved", 1, ())
        with pytest.raises(UserError, match=r"^task 'task-9': agent 1 has no verdict"):
            run.agents[1].attempts("task-9")
