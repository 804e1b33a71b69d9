"""The offline model's edges: refusals, hostile text, errors, and dgm's own questions."""

import asyncio
import json
import time

import pytest

from dgm.messages import Message, Request, RequestRefused, Role, ToolCall
from dgm.offline import OfflineModel, decide
from dgm.offline.model import CONTEXT
from tests.support.offline_talk import TOOLS


@pytest.mark.parametrize(
    ("messages", "code"),
    [([], "invalid_request_error"), ([Message(Role.USER, "a" * (CONTEXT + 1))], "context_length_exceeded")],
)
def test_a_request_that_cannot_be_answered_is_refused(messages, code):
    with pytest.raises(RequestRefused) as refused:
        decide(Request(messages))
    assert refused.value.code == code


@pytest.mark.parametrize(
    "text",
    [
        "(" * 20_000,
        "```\n" + ">>> f(\n" * 9_000,
        "\0\ud800" * 500,
        "Expected: `" * 4_000,
        "_" * 50_000,
        "a.b" * 20_000,
    ],
)
def test_hostile_text_is_answered_quickly(text):
    started = time.process_time()
    assert decide(Request([Message(Role.SYSTEM, text[:30_000]), Message(Role.USER, text)], TOOLS)).text
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    "result", ["1:def f(:\n2:" + "(" * 5_000, "3 a.py\n99999:x\n1:y", "", "Ran tests\nFAILED ("]
)
def test_hostile_results_are_survived(result):
    calls = (
        ToolCall("1", "bash", json.dumps({"command": "grep -n '' a.py"})),
        ToolCall("2", "edit", "[1, 2"),
    )
    results = [Message(Role.TOOL, result, (), call.id) for call in calls]
    assert decide(Request([Message(Role.USER, "fix f"), Message(Role.ASSISTANT, "", calls), *results], TOOLS))


def test_an_error_while_deciding_is_logged_and_answered(caplog):
    request = Request([Message(Role.USER, "x"), None], TOOLS)  # type: ignore[list-item]
    assert asyncio.run(OfflineModel().reply(request)).text == "DONE"
    assert caplog.records[-1].exc_info[0] is AttributeError


def test_a_refusal_is_passed_on_and_no_error(caplog):
    with pytest.raises(RequestRefused):
        asyncio.run(OfflineModel().reply(Request([])))
    assert caplog.records == []


@pytest.mark.parametrize(
    ("shown", "cause"),
    [
        ("=== what it printed ===\nstep limit reached\n", "it reached its step limit before it was done"),
        ("=== what it printed ===\nTraceback (most recent\n", "an error of its own"),
        ("=== the conversation ===\n[output truncated]\n", "output that had been cut"),
        ("=== what it printed ===\nnothing\n", "it left no change at all"),
    ],
)
def test_a_diagnosis_names_what_is_shown(shown, cause):
    system = Message(Role.SYSTEM, "You diagnose a coding agent. Say why it fails.")
    reply = decide(Request([system, Message(Role.USER, shown)]))
    found = json.loads(reply.text.partition("\n\n")[2])
    assert found["problem"].endswith(f"{cause}.")


def test_a_statement_is_declined_in_the_form_that_is_asked_for():
    system = "You write issues for a software project. You get material about one change."
    reply = decide(Request([Message(Role.SYSTEM, system), Message(Role.USER, "What the author wrote: …")]))
    answer = json.loads(reply.text.partition("\n\n")[2])
    assert (answer["solvable"], set(answer)) == (False, {"title", "statement", "solvable", "why"})
