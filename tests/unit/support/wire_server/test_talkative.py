"""The brain that slips as language models do, and comes right in the end."""

import asyncio
import json

import pytest

from dgm.messages import Message, Reply, Request, Role, Tool
from dgm.meta.answers import ask_until_readable, read_object
from tests.support.wire_server import Scripted, Talkative
from tests.support.wire_server.talkative import COMPLAINT, NOWHERE, UNOFFERED
from tests.unit.meta.test_diagnose import FAILED, ISSUE, Bench, brief, make
from tests.unit.offline.test_editor import PROBLEM, SYSTEM, TOOLS, Scaffold, seed


def said(brain, *messages, tools=()):
    return asyncio.run(brain.answer(Request(tuple(messages), tools)))


class Host:
    """A workbench whose model is the brain."""

    def __init__(self, brain):
        self.brain, self.replies = brain, []

    async def ask(self, request, role):
        self.replies.append(await self.brain.answer(request))
        return self.replies[-1]


def test_a_question_is_answered_at_the_third_try():
    bench = Bench(ISSUE)
    make(bench, brief([FAILED]))
    host = Host(Talkative())
    keys = tuple(ISSUE)
    found = asyncio.run(
        ask_until_readable(host, bench.asked[0], lambda text: read_object(text, keys), 2, "diagnose")
    )
    assert set(found) == set(keys)
    first, second, third = host.replies
    assert "{" in first.text
    assert "}" not in first.text
    assert second.calls[0].name == UNOFFERED
    assert third.text.startswith("Let me think")
    assert '{"draft": true}' in third.text


def test_each_question_of_a_conversation_begins_anew():
    brain = Talkative(Scripted([Reply('{"a": 1}')]))
    told = [
        Message(Role.SYSTEM, "s"),
        Message(Role.USER, "q"),
        Message(Role.ASSISTANT, "{}"),
        Message(Role.USER, "more"),
    ]
    assert '{"a"' in said(brain, *told).text
    assert '"a": 1}' not in said(brain, *told).text
    complained = [*told, Message(Role.ASSISTANT, "x"), Message(Role.USER, f"{COMPLAINT}: no")]
    assert said(brain, *complained).calls


def test_edits_begin_with_one_that_fits_nowhere_until_that_is_known():
    right = {"edits": [{"path": "a.py", "old": "x", "new": "y"}]}
    brain = Talkative(Scripted([Reply(json.dumps(right))]))
    complaints = [Message(Role.ASSISTANT, "x"), Message(Role.USER, f"{COMPLAINT}: no")] * 2
    opening = [Message(Role.SYSTEM, "s"), Message(Role.USER, "q")]
    first = read_object(said(brain, *opening, *complaints).text, ["edits"])
    assert [edit["old"] for edit in first["edits"]] == [NOWHERE, "x"]
    told = [
        *opening,
        Message(Role.ASSISTANT, json.dumps(first)),
        Message(Role.USER, "an edit does not apply"),
    ]
    assert read_object(said(brain, *told, *complaints).text, ["edits"]) == right


@pytest.mark.starts_processes
def test_an_improvement_goes_wrong_twice_and_then_as_the_offline_model_makes_it(tmp_path):
    scaffold, brain = Scaffold(tmp_path / "one", seed()), Talkative()
    messages = [Message(Role.SYSTEM, SYSTEM), Message(Role.USER, PROBLEM.format(number=1))]
    called = []
    for _ in range(12):
        reply = said(brain, *messages, tools=TOOLS)
        messages.append(Message(Role.ASSISTANT, reply.text, reply.calls))
        if not reply.calls:
            break
        call = reply.calls[0]
        called.append(call)
        tool = {"bash": scaffold.bash, "edit": scaffold.edit}.get(call.name)
        result = scaffold.cut(tool(**json.loads(call.arguments))) if tool else "error: KeyError"
        messages.append(Message(Role.TOOL, result, call_id=call.id))
    assert called[0].name == UNOFFERED
    misplaced = [call for call in called if json.loads(call.arguments).get("old") == NOWHERE]
    assert len(misplaced) == 1
    assert scaffold.files() != seed()
    assert "Rationale: " in messages[-1].text
    other = Scaffold(tmp_path / "other", seed())
    other.improve(PROBLEM.format(number=1))
    assert scaffold.files() == other.files()


def test_work_on_a_task_is_left_as_it_is():
    tools = (Tool("bash", "Run a shell command.", {"properties": {"command": {}}, "required": ["command"]}),)
    opening = (Message(Role.SYSTEM, "You are a programmer."), Message(Role.USER, "`mean` divides by zero."))
    reply = said(Talkative(), *opening, tools=tools)
    assert [call.name for call in reply.calls] == ["bash"]
