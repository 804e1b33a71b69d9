"""The model that tries an agent: it uses what tools there are, and ends by the agent's own form."""

import asyncio
import json

import pytest

from dgm.messages import Message, Request, Role, Stop, Tool
from dgm.models.builtin import LOOK, ScriptedTalk


def tool(name, required=(), **kinds):
    properties = {parameter: {"type": kind} for parameter, kind in kinds.items()}
    return Tool(name, "", {"type": "object", "properties": properties, "required": list(required)})


def reply(*tools, turns=0, text="Mend it."):
    said = [Message(Role.USER, text), *[Message(Role.ASSISTANT, "", ())] * turns]
    return asyncio.run(ScriptedTalk().reply(Request(said, tools)))


@pytest.mark.parametrize(
    ("offered", "given"),
    [
        (tool("bash", ["command"], command="string"), {"command": LOOK}),
        (tool("shell", ["commands"], commands="array"), {"commands": [LOOK]}),
        (tool("run", ["cmd", "wait_s"], cmd="string", wait_s="integer"), {"cmd": LOOK, "wait_s": 1}),
    ],
)
def test_it_looks_around_by_the_tool_for_commands(offered, given):
    answer = reply(tool("view", ["path"], path="string"), offered)
    assert answer.stop is Stop.TOOL_CALLS
    assert [(call.name, json.loads(call.arguments)) for call in answer.calls] == [(offered.name, given)]


def test_it_ends_by_the_tool_for_that():
    answer = reply(tool("bash", command="string"), tool("final_answer", ["answer"], answer="string"), turns=1)
    assert [(call.name, json.loads(call.arguments)) for call in answer.calls] == [
        ("final_answer", {"answer": "DONE"})
    ]


def test_it_ends_by_the_line_that_the_prompt_asks_for():
    answer = reply(tool("bash", command="string"), turns=1, text="At last run `echo ALL_WORK_IS_DONE`.")
    assert json.loads(answer.calls[0].arguments) == {"command": "echo ALL_WORK_IS_DONE"}


def test_without_such_a_form_it_says_done():
    assert reply(tool("bash", command="string"), turns=1).text == "DONE"
    assert reply().text == "DONE"
