"""Answers as models write them: each is read as a person reads it, or it is asked for again."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from dgm.messages import Message, Role
from dgm.meta.answers import MalformedAnswer
from dgm.meta.drafting import read_changes
from dgm.meta.generality import TaskWords
from dgm.meta.implementing import read_issue
from dgm.meta.module import read_statement
from dgm.meta.self_edit import rationale
from dgm.meta.vetting.novelty import read_judgement

FOLDER = Path(__file__).parent / "answers"
NO_TASKS = TaskWords((), (), ())


def issue(text):
    found = read_issue(text, NO_TASKS)
    return {"log_summary": found.summary, "problem": found.problem, "proposal": found.proposal}


def changes(text):
    return asdict(read_changes(text))


def novelty(text):
    copy, why = read_judgement(text)
    return {"copy": copy, "why": why}


def spoken(read):
    return lambda text: {"text": read([Message(Role.ASSISTANT, text)])}


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
    "changes": (
        changes,
        {"rationale": "allow more steps", "files": {}, "edits": [EDIT], "removed": []},
    ),
    "novelty": (novelty, {"copy": True, "why": "both only raise the step limit"}),
    "rationale": (spoken(rationale), {"text": "allow more steps"}),
    "statement": (spoken(read_statement), {"text": "it speaks of no task"}),
}
JSON_FORMS = ("issue", "changes", "novelty")
LOOSE = ("label", "heading", "in-a-string", "json-in-a-string", "without-the-first-brace")
"""Answers whose beginning and end are those of the text."""


def load(form):
    """The answers of a form: name, what is right, text."""
    for path in sorted((FOLDER / form).glob("*.txt")):
        right, _, text = path.read_bytes().decode().partition("\n-----\n")
        yield path.stem, right, text


ALL = [(form, *answer) for form in FORMS for answer in load(form)]
AROUND = {
    "as it is": "{}",
    "polite": "Sure! Here is the answer:\n\n{}\n\nLet me know if {{anything}} else is needed.",
    "thinking": '<think>\nFirst {{"a": 1}}, then the rest.\n</think>\n\n{}',
    "line ends": "{}",
    "mark of order": "\ufeff{}\n\n",
    "quoted": "> I was asked for an object.\n\n{}\n\n---\n",
}
"""What stands around an answer without a change of what it says."""


def read(form, text):
    """The values that are read, or None if it is asked for again."""
    try:
        return FORMS[form][0](text)
    except MalformedAnswer:
        return None


def expected(form, right):
    if right in ("again", "none"):
        return {"text": ""} if right == "none" else None
    return {**FORMS[form][1], **json.loads(right.removeprefix("read") or "{}")}


@pytest.mark.parametrize(("form", "name", "right", "text"), ALL, ids=[f"{one[0]}-{one[1]}" for one in ALL])
def test_an_answer_is_read_as_a_person_reads_it(form, name, right, text):
    assert read(form, text) == expected(form, right)


@pytest.mark.parametrize("form", JSON_FORMS)
@pytest.mark.parametrize("around", AROUND)
def test_words_around_an_answer_change_nothing(form, around):
    wrong = []
    for name, right, text in load(form):
        if name.startswith((*LOOSE, "cut", "thinking")):
            continue
        told = text.replace("\n", "\r\n") if around == "line ends" else text
        found = read(form, AROUND[around].format(told))
        if json.loads(json.dumps(found).replace("\\r\\n", "\\n")) != expected(form, right):
            wrong.append(name)
    assert wrong == []


@pytest.mark.parametrize("form", ["rationale", "statement"])
@pytest.mark.parametrize(
    "before", ["I look at the loop.", "<think>\nRationale: no\nGeneral: no\n</think>\nI go on.", ""]
)
def test_what_was_said_before_changes_nothing(form, before):
    read_words = {"rationale": rationale, "statement": read_statement}[form]
    for name, right, text in load(form):
        said = [Message(Role.ASSISTANT, before), Message(Role.TOOL, "General: x\nRationale: x")]
        after = [Message(Role.ASSISTANT, text.replace("\n", "\r\n"))]
        if text:
            assert read_words([*said, *after]) == expected(form, right)["text"], name


@pytest.mark.parametrize("form", JSON_FORMS)
def test_the_beginning_of_an_answer_is_never_read_as_another_one(form):
    wrong = []
    for name, right, text in load(form):
        if right == "again" or name.startswith((*LOOSE, "a-draft", "corrected", "changed")):
            continue
        ends = [
            n for n in range(1, len(text), 3) if read(form, text[:n]) not in (None, expected(form, right))
        ]
        wrong += [f"{name}: {text[: ends[0]][-40:]!r}"] if ends else []
    assert wrong == []
