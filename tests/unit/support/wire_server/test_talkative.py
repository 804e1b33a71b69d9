"""The brain that slips as language models do, and comes right in the end."""

import asyncio
import json

import pytest

from dgm.messages import Message, Reply, Request, Role, Tool
from dgm.meta.answers import ask_until_readable, read_object
from tests.support.offline_talk import IMPROVE, PROBLEM, Scaffold, seed
from tests.support.wire_server import Scripted, Talkative
from tests.support.wire_server.talkative import COMPLAINT, NOWHERE, UNOFFERED
from tests.unit.meta.test_diagnose import FAILED, ISSUE, Bench, brief, make


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
    brain, problem = Talkative(), PROBLEM.format(number=1)
    scaffold = Scaffold(tmp_path / "one", model=lambda request: asyncio.run(brain.answer(request)))
    texts = scaffold.write(seed()).work(problem, IMPROVE, 12)
    called = [call for reply in scaffold.replies for call in reply.calls[:1]]
    assert called[0].name == UNOFFERED
    assert [json.loads(call.arguments).get("old") for call in called].count(NOWHERE) == 1
    assert scaffold.read() != seed()
    assert "Rationale: " in texts[-1]
    other = Scaffold(tmp_path / "other").write(seed())
    other.work(problem, IMPROVE)
    assert scaffold.read() == other.read()


def test_work_on_a_task_is_left_as_it_is():
    tools = (Tool("bash", "Run a shell command.", {"properties": {"command": {}}, "required": ["command"]}),)
    opening = (Message(Role.SYSTEM, "You are a programmer."), Message(Role.USER, "`mean` divides by zero."))
    reply = said(Talkative(), *opening, tools=tools)
    assert [call.name for call in reply.calls] == ["bash"]
