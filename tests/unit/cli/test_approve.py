"""``dgm approve``: lists, answers and asks; whatever cannot be done is one line and exit code 2."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from dgm.archive.events import AgentStillborn
from dgm.archive.live import APPROVALS, ApprovalAnswer, read_answer
from dgm.archive.run import Run
from dgm.cli.main import main
from dgm.domain import ActionId, AgentId, Stillborn
from tests.support.runs.waiting import make_waiting_run

pytestmark = pytest.mark.starts_processes

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run with agents 0 and 1 (of action 1), children 2 and 3 that wait, and 4 that was rejected."""
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    return make_waiting_run(tmp_path / "asks")


def dgm(capsys, *words, code=0):
    """What the command prints; on the error stream where it fails."""
    with pytest.raises(SystemExit) as ended:
        main(["approve", *map(str, words)])
    said = capsys.readouterr()
    assert ended.value.code == code, said
    if code == 2:
        assert (said.out, len(said.err.splitlines())) == ("", 1)
        return said.err
    return said.out


def answers(folder):
    return {action: read_answer(folder, ActionId(action)) for action in (2, 3)}


def test_children_that_wait_are_listed(folder, capsys):
    out = dgm(capsys, "asks")
    assert "child 2 of 0 (op): 1 file, +2 -1; waits for " in out
    assert "why\\x1b[31m 2" in out
    assert "child 4" not in out
    children = json.loads(dgm(capsys, "asks", "--json"))["children"]
    assert [(child["child"], child["parents"], child["answer"]) for child in children] == [
        (2, [0], None),
        (3, [0], None),
    ]
    assert children[0]["until"] == children[0]["since"] + 3600.0
    assert (children[0]["files"], children[0]["added"], children[0]["removed"]) == (1, 2, 1)


def test_a_child_that_waits_is_shown_like_an_agent(folder, capsys):
    def show(*options):
        with pytest.raises(SystemExit) as ended:
            main(["show", "asks", "3", *options])
        assert ended.value.code == 0
        return capsys.readouterr().out

    waiting = json.loads(dgm(capsys, "asks", "--json"))["children"][1]
    assert json.loads(show("--json")) == waiting
    patch = show("--diff")
    assert patch.startswith("diff --git ")
    assert show().endswith(patch) and show().startswith("child 3 of 0 (op): 1 file, ")


def test_an_answer_is_a_file_and_nothing_else(folder, capsys):
    log = (folder / "run.db").read_bytes()
    out = dgm(capsys, "asks", 3, "yes")
    assert "the answer is read when the run is resumed: dgm resume asks" in out
    view = json.loads(dgm(capsys, "asks", 2, "no", "--reason", "it only\nrenames", "--json"))
    assert (view["answered"], view["running"], view["replaced"]) == (2, False, "")
    assert answers(folder) == {
        2: ApprovalAnswer(False, "it only renames"),
        3: ApprovalAnswer(True),
    }
    assert (folder / "run.db").read_bytes() == log
    assert "answered already, and not read yet: no it only renames" in dgm(capsys, "asks")
    assert json.loads(dgm(capsys, "asks", 2, "yes", "--json"))["replaced"] == "no it only renames"
    assert answers(folder)[2] == ApprovalAnswer(True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([7, "yes"], "child 7 does not wait; waiting: 2, 3"),
        (["best", "yes"], "CHILD"),
        (["9" * 30, "yes"], "does not wait"),
        ([1, "no"], "child 1 was born as agent 1 already (a person)"),
        ([4, "no"], "child 4 was stillborn already (rejected: too\\x1b[31m long x x"),
        ([2, "maybe"], "ANSWER"),
        ([2], "give a child's number, yes or no"),
        (["--reason", "so"], "give a child's number, yes or no"),
    ],
)
def test_what_cannot_be_answered_is_one_line_and_changes_nothing(folder, capsys, words, problem):
    error = dgm(capsys, "asks", *words, code=2)
    assert problem in error
    assert len(error) < 450
    assert answers(folder) == {2: None, 3: None}


def test_a_folder_that_cannot_be_written_is_one_line(folder, capsys):
    (folder / APPROVALS / "2").mkdir()
    assert "no answer: " in dgm(capsys, "asks")
    assert "is a folder; move it away" in dgm(capsys, "asks", 2, "yes", code=2)
    blocked = folder / APPROVALS
    for path in sorted(blocked.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    blocked.rmdir()
    blocked.write_text("a file where a folder is wanted")
    assert str(blocked) in dgm(capsys, "asks", 2, "yes", code=2)


def talk(folder, *words):
    """What is shown to a person who says the words; between them, functions are called while a question is open."""
    ours, theirs = pty.openpty()
    asked = subprocess.Popen(
        [sys.executable, "-m", "dgm", "approve", "asks"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "dumb"},
        cwd=ROOT,
    )
    os.close(theirs)
    shown = b""
    try:
        for word in words:
            if callable(word):
                while b"skip or quit" not in shown:
                    shown += os.read(ours, 10_000)
                word()
            else:
                os.write(ours, word)
        while chunk := os.read(ours, 10_000):
            shown += chunk
    except OSError:
        pass  # what a terminal says when nobody is on its other end
    assert asked.wait(60) == 0, shown
    os.close(ours)
    return shown


def test_a_person_is_asked_child_by_child_with_the_diff(folder):
    shown = talk(folder, b"x\nn\nnot now\ny\n")
    assert b"+child" in shown
    assert b"\x1b[31m 2" not in shown
    assert answers(folder) == {2: ApprovalAnswer(False, "not now"), 3: ApprovalAnswer(True)}


def test_a_child_that_is_decided_while_a_person_reads_is_not_asked_about(folder):
    def expires():
        with Run.open(folder, write=True) as run:
            dead = Stillborn((AgentId(0),), "op", "expired", "nobody answered", decided="a time-out")
            run.append(AgentStillborn(ActionId(3), dead))

    shown = talk(folder, expires, b"s\nq\n")
    assert b"child 2 of 0" in shown
    assert b"child 3 of 0" not in shown
    assert b"asks: nothing was answered" in shown
