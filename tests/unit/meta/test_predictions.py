"""Predictions in an editor's last words: asked for, read, and bounded."""

import pytest

from dgm.archive.events import AgentBorn, decode, encode
from dgm.domain import ActionId, AgentId, Born, CommitId, Prediction, Verdict
from dgm.messages import Message, Role
from dgm.meta.prompts import load_frozen, load_shipped
from dgm.meta.self_edit import SelfEdit
from dgm.meta.task_words import MAX_PREDICTIONS, find_lines, find_statement, read_predictions
from dgm.offline.improve import rank_kinds
from tests.unit.meta.making import Bench, brief, make, member

TASKS = ["django__django-11", "lib/a b", "t-1", "t-12"]
NO = Verdict.UNRESOLVED


def say(*texts):
    return [Message(Role.ASSISTANT, text) for text in texts]


@pytest.mark.parametrize(
    ("line", "task", "reason"),
    [
        ("t-1: more steps", "t-1", "more steps"),
        ("  `t-12`: more  steps", "t-12", "more steps"),
        ("**t-12** – more steps", "t-12", "more steps"),
        ("t-12", "t-12", ""),
        ("`cases-are-named`", None, ""),
        ("django__django-11-0/: its case's folder", "django__django-11", "its case's folder"),
        ("lib%2Fa%20b-2: its case's folder", "lib/a b", "its case's folder"),
        ("lib/a b: two words", "lib/a b", "two words"),
        ("t-123: another task", None, ""),
        ("t-1-bis: another task", None, ""),
        ("t-13: unknown", None, ""),
        ("t-1: " + "x" * 300, "t-1", "x" * 200),
    ],
)
def test_a_line_names_a_task_and_says_why(line, task, reason):
    assert read_predictions([line], TASKS) == ((Prediction(task, reason),) if task else ())


def test_a_task_counts_once_and_there_are_not_too_many():
    tasks = [f"t-{number:02}" for number in range(30)]
    lines = ["t-00: first", "t-00: second", *tasks]
    predictions = read_predictions(lines, tasks)
    assert [each.task for each in predictions] == tasks[:MAX_PREDICTIONS]
    assert predictions[0].reason == "first"


def test_the_lines_are_those_of_the_last_text_that_has_some():
    words = say("Predicts: t-1: no", "Rationale: x\n\n- **Predicts:** t-1: y\nPREDICTS: t-12", "DONE")
    user = Message(Role.USER, "Predicts: t-1: z")
    assert find_lines([*words, user], "Predicts") == [" t-1: y", " t-12"]
    assert find_lines(say("<think>\nPredicts: t-1\n</think>\nIt predicts: t-1"), "Predicts") == ()


@pytest.mark.parametrize("text", ["\n" * 300_000, ("#" * 400 + "\n") * 3_000], ids=["blank", "marks"])
def test_lines_without_words_are_read_in_linear_time(text):
    assert find_lines(say(text), "Predicts") == ()  # in quadratic time, this takes hours
    assert find_statement(say(text), "Rationale") == ""


def test_lines_after_the_first_two_hundred_are_not_read():
    assert read_predictions(["other: x"] * 199 + ["t-1: y", "t-2: z"], ["t-1", "t-2"]) == (
        Prediction("t-1", "y"),
    )


def test_an_editor_is_asked_and_promises_only_what_its_agent_failed():
    words = "DONE\nRationale: more steps\nPredicts: a: steps\nPredicts: b: steps\nPredicts: c: steps"
    bench = Bench(words=words)
    proposal = make(SelfEdit, bench, brief(member(4, a=NO, b=Verdict.RESOLVED)))
    assert (proposal.rationale, proposal.predictions) == ("more steps", (Prediction("a", "steps"),))
    assert "`/run/evidence/agents/4/verdicts.md`" in bench.jobs[0].problem


def test_nobody_is_asked_without_a_failure_or_in_a_run_that_froze_its_prompts_before():
    bench = Bench()
    make(SelfEdit, bench, brief(member(4, b=Verdict.RESOLVED)))
    assert "Predicts" not in bench.jobs[0].problem
    values = {"count": 20, "verdicts": "v"}
    assert load_frozen({"prompts": {"self-edit": "x"}}, "run.json").fill("predict", values) == ""
    assert "Predicts" in load_frozen({}, "run.json").fill("predict", values)


def test_the_request_changes_no_draw_of_the_offline_model():
    source = {path: entry.data.decode() for path, entry in member(0).source.items() if path.endswith(".py")}
    asked = load_shipped()["predict"].replace("$count", "20").replace("$verdicts", "v")
    assert rank_kinds("Child number: 3\n" + asked, source) == rank_kinds("Child number: 3\n", source)


def test_half_a_surrogate_pair_in_a_reason_is_written_out_in_the_log():
    promised = (Prediction("t-1", "\ud800"),)
    event = AgentBorn(
        ActionId(1), AgentId(1), Born((AgentId(0),), "op", CommitId(""), "why", predictions=promised)
    )
    assert decode(encode(event)).outcome.predictions == (Prediction("t-1", "\\ud800"),)
