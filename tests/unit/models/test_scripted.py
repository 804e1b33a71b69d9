"""A model by a list of replies in a file, or by a function in one."""

import asyncio

import pytest

from dgm.errors import UserError
from dgm.messages import Message, Request, RequestRefused, Role, Stop, Tool
from dgm.models.choose import open_model
from dgm.models.scripted import lend_script

LIST = '["Hello.", {"text": "I look.", "calls": [{"name": "bash", "arguments": {"command": "ls"}}]}, "DONE"]'
FUNCTION = """
def reply(messages, tools):
    if messages[-1]["text"] == "stop":
        raise ValueError("enough")
    return {"text": f"{len(messages)} {messages[-1]['role']}", "calls": [{"name": tools[0]}]}
"""


@pytest.fixture
def script(tmp_path):
    def made(text, name="replies.json"):
        (tmp_path / name).write_text(text)
        return open_model(f"scripted:{tmp_path / name}")

    return made


def ask(model, *texts):
    messages = [
        Message(Role.ASSISTANT if number % 2 else Role.USER, text) for number, text in enumerate(texts)
    ]
    return asyncio.run(model.reply(Request(messages, (Tool("bash", ""),))))


def test_a_reply_follows_from_the_number_of_turns(script):
    model = script(LIST)
    assert (ask(model, "a").text, ask(model, "a").stop) == ("Hello.", Stop.END)
    second = ask(model, "a", "b", "c")
    assert (second.text, second.stop) == ("I look.", Stop.TOOL_CALLS)
    assert [(call.name, call.arguments) for call in second.calls] == [("bash", '{"command": "ls"}')]
    assert ask(model, *"abcde").text == "DONE"


def test_a_call_beyond_the_last_reply_is_refused_and_the_agent_told(script):
    with pytest.raises(RequestRefused, match=r"replies\.json has 3 replies, this is call 4") as refused:
        ask(script(LIST), *"abcdefg")
    assert (refused.value.code, refused.value.own) == ("script_ended", True)


def test_a_function_sees_the_conversation_and_the_tools(script):
    model = script(FUNCTION, "mine.py")
    found = ask(model, "a", "b", "c")
    assert (found.text, [call.name for call in found.calls]) == ("3 user", ["bash"])
    with pytest.raises(RequestRefused, match="ValueError: enough"):
        ask(model, "stop")


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("[", "a.json", "is not JSON"),
        ("{}", "a.json", "expected a list of replies"),
        ('["ok", 3]', "a.json", "reply 2: expected a text"),
        ('[{"text": "a", "call": []}]', "a.json", "reply 1: expected a text"),
        ('[{"calls": [{"arguments": {}}]}]', "a.json", "reply 1: expected a text"),
        ('[{"text": null}]', "a.json", "reply 1: expected a text"),
        ('[{"calls": [{"name": 5}]}]', "a.json", "reply 1: expected a text"),
        ("x = 1", "a.py", r"defines no reply\(messages, tools\)"),
        ("1 / 0", "a.py", "cannot be run: ZeroDivisionError"),
    ],
)
def test_a_file_that_is_no_script_is_named_in_one_line(text, name, said, script):
    with pytest.raises(UserError, match=said) as refused:
        script(text, name)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named():
    with pytest.raises(UserError, match=r"none\.json: cannot be read: No such file"):
        open_model("scripted:none.json")


def test_a_program_passes_a_list_or_a_function():
    assert ask(open_model(lend_script(("Hello.", "DONE"))), *"abc").text == "DONE"

    def reply(messages, tools):
        return f"{len(messages)} {tools}"

    names = [lend_script(reply), lend_script(lambda messages, _: messages[0]["text"])]
    assert [ask(open_model(name), "a").text for name in names] == ["1 ['bash']", "a"]
    assert lend_script(["one"]) == lend_script(["one"]) != lend_script(["two"])
