"""``dgm show RUN AGENT --transcript TASK``: one evaluation, as the browser shows it."""

import json
from pathlib import Path

import pytest

from dgm.archive.events import ActionStarted, TaskGraded
from dgm.archive.run import Run
from dgm.cli.main import main
from dgm.domain import SEED, Cost, Evaluate, Evaluation, TaskId, Verdict
from dgm.tui.reader import RunReader
from dgm.tui.tabs.evaluations import load_one
from tests.support.runs.packable import begin, child, evaluate

SAID = "hello\x1b[31m there"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The seed with two attempts at ``a``; agent 1, which has tried nothing."""
    where = tmp_path_factory.mktemp("transcript") / "run"
    with begin(where) as run:
        evaluate(run, SAID)
        action = run.tree.next_action
        run.append(ActionStarted(action, Evaluate(SEED, TaskId("a"), 1)))
        traces = {"conversation": run.traces.put(b"## user\n\nonce more")}
        done = Evaluation(SEED, TaskId("a"), 1, Verdict.RESOLVED, "all pass", 1.0, Cost(traces=traces))
        run.append(TaskGraded(action, done))
        child(run)
    return where


def shown(capsys, *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["show", *map(str, words)])
    said = capsys.readouterr()
    return int(ended.value.code or 0), said.out, said.err


def test_it_is_what_the_browser_shows(folder, capsys) -> None:
    code, out, _ = shown(capsys, folder, "seed", "--transcript", "a", "--attempt", 1)
    assert code == 0
    with Run.open(folder) as run:
        first = run.store.graded(SEED)[0].event
    assert isinstance(first, TaskGraded)
    with RunReader(folder) as reader:
        body = load_one(reader, first.action)()
    assert out == "".join(text + "\n" for text in body.text())
    assert "output of the agent's program" in out
    assert "\x1b" not in out
    assert "hello" in out


def test_the_newest_attempt_is_shown_and_all_can_be_chosen(folder, capsys) -> None:
    assert "once more" in shown(capsys, folder, "seed", "--transcript", "a")[1]
    assert "once more" not in shown(capsys, folder, "seed", "--transcript", "a", "--attempt", 1)[1]


def test_a_program_gets_each_turn_once(folder, capsys) -> None:
    code, out, _ = shown(capsys, folder, "seed", "--transcript", "a", "--attempt", 1, "--json")
    assert code == 0
    record = json.loads(out)
    assert [each["attempt"] for each in record["attempts"]] == [1, 2]
    assert (record["agent"], record["task"], record["attempt"]) == (0, "a", 1)
    roles = [turn["role"] for turn in record["turns"]]
    assert roles == ["user", "assistant"] * 3
    assert record["turns"][0] == {
        "thread": 1,
        "segment": 1,
        "call": 0,
        "role": "user",
        "text": f"mend a: {SAID}",
    }


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("seed", "--transcript", "aa"), "did you mean 'a'?"),
        (("seed", "--transcript", "zzz"), "it has verdicts on a"),
        (("1", "--transcript", "a"), "agents that tried it: 0"),
        (("1", "--transcript", "b"), "no agent tried it"),
        (("7", "--transcript", "a"), "give an id from 0 to 1"),
        (("seed", "--transcript", "a", "--attempt", "3"), "give 1 or 2"),
        (("seed", "--attempt", "1"), "give --transcript TASK as well"),
    ],
)
def test_what_is_not_there_is_one_line_with_what_to_give(folder, capsys, words, complaint: str) -> None:
    code, out, err = shown(capsys, folder, *words)
    assert (code, out) == (2, "")
    assert complaint in err
    assert len(err.splitlines()) == 1
