"""Runs from a program: all of them, the events of one, its end, and its children that wait."""

import os
import subprocess
import sys

import pytest

import dgm
from dgm.archive.live import ApprovalAnswer, read_answer, read_stop_request
from dgm.errors import UserError
from tests.support.runs.made import make_run
from tests.support.runs.waiting import make_waiting_run

WRITER = """
import sys
from pathlib import Path
from dgm.archive.run import Run
with Run.open(Path(sys.argv[1]), write=True):
    print("ready", flush=True)
    sys.stdin.read()
    print("alive")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An archive with one run."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return make_run(tmp_path / "made", verdicts=["+-", "++"])


@pytest.mark.starts_processes
def test_runs_are_rows(folder, tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.db").write_bytes(b"")
    rows = dgm.runs().runs
    assert {row.run: row.state for row in rows} == {"made": "goal reached", "broken": "not a run"}
    assert [row.run for row in rows if row.problem] == ["broken"]
    assert [row.agents for row in dgm.runs(tmp_path).runs] == [2, None]
    with pytest.raises(UserError, match="no such folder"):
        dgm.runs(tmp_path / "missing")


@pytest.mark.starts_processes
def test_a_run_is_views_and_tables(folder):
    with dgm.open("made") as run:
        assert (run.view.agents, run.tree.best, run.view.best.agent) == (2, run.best.id, run.best.id)
        every = list(run.events())
        assert [event.seq for event in every] == list(range(1, len(every) + 1))
        assert list(run.events(tail=3)) == every[-3:]
        assert list(run.events(follow=True)) == every
        assert run.diff(1) == run.agents[1].diff() == run.agents[1].diff(0)
        assert run.agents[0].diff() == ""
        rows = list(run.agent_table)
        assert [(row["agent"], row["own_n"]) for row in rows] == [(0, 2), (1, 2)]
        assert run.agent_table.to_pandas().shape == (2, len(rows[0]))
        with pytest.raises(UserError, match="no agent 7"):
            run.diff(7)


@pytest.mark.starts_processes
def test_a_run_is_stopped_where_one_is_written(folder):
    with dgm.open("made") as run:
        assert run.stop() is False
        words = [sys.executable, "-c", WRITER, str(folder)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        with subprocess.Popen(words, **pipes, text=True, env={**os.environ}) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            assert run.stop() is True
            assert read_stop_request(folder) is False
            assert writer.communicate("go on")[0] == "alive\n"


@pytest.mark.starts_processes
def test_children_that_wait_are_answered(tmp_path):
    folder = make_waiting_run(tmp_path / "asks")
    with dgm.open(folder) as run:
        assert [row["child"] for row in run.waiting] == [2, 3]
        run.approve(2)
        answered = run.approve(3, "no", reason="too\nlong")
        assert (answered.answered, answered.replaced, answered.running) == (3, "", False)
        assert [row["answer"] for row in run.waiting] == ["yes", "no"]
        assert run.approve(3).replaced == "no too long"
        with pytest.raises(UserError, match="was stillborn already"):
            run.approve(4)
    assert read_answer(folder, 2) == ApprovalAnswer(True)


@pytest.mark.starts_processes
def test_a_run_that_asks_nobody_says_how_one_asks(folder):
    with dgm.open("made") as run:
        assert len(run.waiting) == 0
        with pytest.raises(UserError, match=r"asks nobody, because gates\.approve is off"):
            run.approve(1)


@pytest.mark.starts_processes
def test_a_report_writes_its_page_and_its_figures(folder, tmp_path):
    with dgm.open("made") as run:
        view = run.report(html=tmp_path / "page.html", figures=tmp_path / "figures")
        assert view.files[0] == tmp_path / "page.html" and view.files[0].is_file()
        assert all(file.read_bytes().startswith(b"<svg") for file in view.files[1:])
        with pytest.raises(UserError, match="is no folder"):
            run.report(figures=tmp_path / "made" / "run.json")


@pytest.mark.starts_processes
def test_a_control_that_would_show_nothing_is_refused_before_anything_is_performed(folder):
    with dgm.open("made") as run, pytest.raises(UserError, match="equal answers to equal requests"):
        run.report(control=True)
    assert not (folder / "holdout").exists()
