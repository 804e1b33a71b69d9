"""Runs from a program: all of them, the events of one, its end, and its children that wait."""

import os
import subprocess
import sys

import pytest

import dgm
from dgm.archive.approvals import ApprovalAnswer, read_answer
from dgm.archive.codec import encode
from dgm.archive.stop_request import read_stop_request
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


def test_runs_are_rows(folder, tmp_path):
    (tmp_path / "broken").mkdir()
    states = {"made": "goal reached", "broken": "not a run"}
    found = dgm.runs()
    assert {row["run"]: row["state"] for row in found} == states
    assert [row["run"] for row in found if row["problem"]] == ["broken"]
    assert [row["agents"] for row in dgm.runs(tmp_path) if row["run"] == "made"] == [2]
    assert all(row["bytes"] for row in dgm.runs(sizes=True) if row["run"] == "made")
    with pytest.raises(UserError, match="no such folder"):
        dgm.runs(tmp_path / "missing")


def test_events_are_chosen_by_number_and_kind(folder):
    with dgm.open("made") as run:
        every = list(run.events())
        assert [each.seq for each in every] == list(range(1, len(every) + 1))
        assert list(run.events(after=2)) == every[2:]
        assert list(run.events(tail=3)) == every[-3:]
        graded = list(run.events(kind="task_graded", tail=2))
        assert [encode(each.event)[0] for each in graded] == ["task_graded"] * 2
        assert list(run.events(follow=True)) == every
        with pytest.raises(UserError, match=r"^kind graded: there are model_called"):
            run.events(kind="graded")
        with pytest.raises(UserError, match=r"^after and tail both say"):
            run.events(after=1, tail=1)


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


def test_a_run_that_asks_nobody_says_how_one_asks(folder):
    with dgm.open("made") as run:
        assert len(run.waiting) == 0
        with pytest.raises(UserError, match=r"asks nobody, because gates\.approve is off"):
            run.approve(1)


@pytest.mark.starts_processes
def test_figures_of_a_report_are_files(folder, tmp_path):
    with dgm.open("made") as run:
        files = run.report().save_figures(tmp_path / "figures")
        assert files and all(file.read_bytes().startswith(b"<svg") for file in files)
        with pytest.raises(UserError, match=r"^figures "):
            run.report().save_figures(tmp_path / "made" / "run.json")


def test_a_control_that_would_show_nothing_is_refused_before_anything_is_performed(folder):
    with dgm.open("made") as run, pytest.raises(UserError, match="equal answers to equal requests"):
        run.report(control=True)
    assert not (folder / "holdout").exists()
