"""Answers as models write them: each is read as a person reads it, or it is asked for again."""

import json
from pathlib import Path

import pytest

from dgm.messages import Message, Role
from dgm.meta.answers import MalformedAnswer, read_answer
from dgm.meta.invent import Changes
from dgm.meta.issue import Issue
from dgm.meta.self_edit import rationale
from dgm.meta.similarity import Judgement
from dgm.meta.task_words import find_statement

FOLDER = Path(__file__).parent / "answers"


def changes(text):
    answer = read_answer(Changes, text).model_dump(exclude={"thought"})
    return {**answer, "files": {file["path"]: file["text"] for file in answer["files"]}}


def issue(text):
    answer = read_answer(Issue, text)
    if not answer.general:
        raise MalformedAnswer("not general")
    return answer.model_dump(exclude={"general"})


def say(text):
    return [Message(Role.ASSISTANT, text)]


EDIT = {"path": "agent/loop.py", "old": "MAX_STEPS = 10", "new": "MAX_STEPS = 40"}
FORMS = {
    "issue": (
        issue,
        {
            "log_summary": "The agent edits once and stops.",
            "problem": "It never runs the tests.",
            "proposal": "Run the tests after each edit.",
        },
    ),
    "changes": (changes, {"rationale": "allow more steps", "files": {}, "edits": (EDIT,), "removed": ()}),
    "novelty": (
        lambda text: read_answer(Judgement, text).model_dump(by_alias=True),
        {"copy": True, "why": "both only raise the step limit"},
    ),
    "rationale": (lambda text: {"text": rationale(say(text))}, {"text": "allow more steps"}),
    "statement": (
        lambda text: {"text": find_statement(say(text), "General")},
        {"text": "it speaks of no task"},
    ),
}
JSON_FORMS = ("issue", "changes", "novelty")


def load(form):
    """Return name, what is right, and text of each answer of a form."""
    for path in sorted((FOLDER / form).glob("*.txt")):
        right, _, text = path.read_bytes().decode().partition("\n-----\n")
        yield path.stem, right, text


ALL = [(form, *answer) for form in FORMS for answer in load(form)]
AROUND = {
    "polite": "Sure! Here is the answer:\n\n{}\n\nLet me know if {{anything}} else is needed.",
    "thinking": '<think>\nFirst {{"a": 1}}, then the rest.\n</think>\n\n{}',
    "byte order mark": "\ufeff{}\n\n",
    "quoted": "> I was asked for an object.\n\n{}\n\n---\n",
}


def read(form, text):
    """Return the values that are read, or None if it is asked for again."""
    try:
        return json.loads(json.dumps(FORMS[form][0](text)))
    except MalformedAnswer:
        return None


def expected(form, right):
    if right in ("again", "none"):
        return {"text": ""} if right == "none" else None
    return json.loads(json.dumps({**FORMS[form][1], **json.loads(right.removeprefix("read") or "{}")}))


@pytest.mark.parametrize(("form", "name", "right", "text"), ALL, ids=[f"{row[0]}-{row[1]}" for row in ALL])
def test_an_answer_is_read_as_a_person_reads_it(form, name, right, text):
    assert read(form, text) == expected(form, right)
    if form in JSON_FORMS:
        with_returns = json.dumps(read(form, text.replace("\n", "\r\n"))).replace("\\r\\n", "\\n")
        assert json.loads(with_returns) == expected(form, right)


@pytest.mark.parametrize("form", JSON_FORMS)
def test_words_around_an_answer_never_give_another_one(form):
    right_answers = 0
    for name, right, text in load(form):
        if right == "again" or name.startswith("thinking"):
            continue
        for around, words in AROUND.items():
            answer = read(form, words.format(text))
            right_answers += answer is not None
            assert answer in (None, expected(form, right)), (name, around)
    assert right_answers > 0.9 * len(AROUND) * sum(right.startswith("read") for _, right, _ in load(form))


@pytest.mark.parametrize("form", JSON_FORMS)
def test_the_beginning_of_an_answer_is_never_read_as_another_one(form):
    for name, right, text in load(form):
        if right != "again" and not name.startswith(("a-draft", "corrected", "changed")):
            for n in range(1, len(text), 3):
                assert read(form, text[:n]) in (None, expected(form, right)), (name, text[:n])


@pytest.mark.parametrize("form", ["rationale", "statement"])
def test_words_before_a_statement_change_nothing(form):
    for name, right, text in load(form):
        for before in ("I look at the loop.", "<think>\nRationale: no\nGeneral: no\n</think>\nI go on.", ""):
            messages = [*say(before), Message(Role.TOOL, "General: x\nRationale: x"), *say(text)]
            statement = rationale(messages) if form == "rationale" else find_statement(messages, "General")
            assert not text or statement == expected(form, right)["text"], name
