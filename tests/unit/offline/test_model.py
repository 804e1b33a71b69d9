"""The offline model solves small problems through whatever tools a scaffold offers, and never falls over."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dgm.messages import Message, Request, RequestRefused, Role, Stop, Tool, ToolCall
from dgm.offline import OfflineModel, decide, wire

SYSTEM = "You are a programmer. Fix the problem. Use the tools. Say DONE when you have finished."
PROBLEM = "The repository is in {root}.\n\n# share() hands out too much\n\n`share(100, 3)` gives 101 in all."
LIBRARY = '''"""Shares."""


def share(cents, parts):
    """Split an amount."""
    each, rest = divmod(cents, parts)
    return [each + 1 if index <= rest else each for index in range(parts)]
'''
TEST = """import unittest
from shares.split import share


class Share(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(share(100, 3), [34, 33, 33])
"""


def tool(name, description, *parameters):
    properties = {parameter: {"type": "string", "description": ""} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(parameters)}
    return Tool(name, description, schema)


SHELL = tool("bash", "Run a shell command in the repository.", "command")
EDIT = tool("edit", "Replace a text that occurs exactly once in a file.", "path", "old", "new")


class Driver:
    """A minimal scaffold: runs calls on a folder and keeps the conversation."""

    def __init__(self, root, tools=(SHELL, EDIT), names=("command", "path", "old", "new"), limit=5000):
        self.root, self.tools, self.names, self.limit = root, tools, names, limit
        self.messages = [Message(Role.SYSTEM, SYSTEM), Message(Role.USER, PROBLEM.format(root=root))]
        self.replies = []

    def work(self, steps=30):
        for _ in range(steps):
            reply = decide(Request(self.messages, self.tools))
            self.replies.append(reply)
            self.messages.append(Message(Role.ASSISTANT, reply.text, reply.calls))
            if not reply.calls:
                break
            for call in reply.calls:
                self.messages.append(Message(Role.TOOL, self.execute(call)[: self.limit], (), call.id))
        return self.replies

    def execute(self, call):
        given = json.loads(call.arguments)
        command, path, old, new = self.names
        if command in given:
            done = subprocess.run(
                ["bash", "-c", given[command]],
                cwd=self.root,
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
            )
            return done.stdout + done.stderr
        file = self.root / given[path]
        text = file.read_text()
        if text.count(given[old]) != 1:
            return f"error: the text occurs {text.count(given[old])} times"
        file.write_text(text.replace(given[old], given[new]))
        return "edited"


@pytest.fixture
def repository(tmp_path):
    for path, text in {
        "shares/__init__.py": "",
        "shares/split.py": LIBRARY,
        "tests/__init__.py": "",
        "tests/test_split.py": TEST,
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.starts_processes
def test_a_boundary_is_mended_through_shell_and_edit_tool(repository):
    replies = Driver(repository).work()
    assert "index < rest" in (repository / "shares/split.py").read_text()
    assert "DONE" in replies[-1].text
    assert replies[-1].stop is Stop.END


@pytest.mark.starts_processes
def test_other_names_of_tools_and_parameters_are_understood(repository):
    tools = (
        tool("terminal", "Execute a command.", "cmd"),
        tool("substitute", "Replace one piece of text in a file.", "filename", "search", "replacement"),
    )
    Driver(repository, tools, ("cmd", "filename", "search", "replacement")).work()
    assert "index < rest" in (repository / "shares/split.py").read_text()


@pytest.mark.starts_processes
def test_a_shell_alone_is_enough(repository):
    Driver(repository, (SHELL,)).work()
    assert "index < rest" in (repository / "shares/split.py").read_text()


@pytest.mark.starts_processes
def test_without_a_result_nothing_is_edited(repository):
    driver = Driver(repository, limit=0)
    driver.work()
    assert (repository / "shares/split.py").read_text() == LIBRARY


def test_without_tools_it_ends():
    reply = decide(Request([Message(Role.USER, "Fix it.")]))
    assert reply.calls == ()
    assert "DONE" in reply.text


def test_a_request_without_messages_is_refused():
    with pytest.raises(RequestRefused, match="message"):
        decide(Request([]))


def test_a_request_beyond_the_context_is_refused():
    with pytest.raises(RequestRefused) as refused:
        decide(Request([Message(Role.USER, "a" * (wire.CONTEXT + 1))]))
    assert refused.value.code == "context_length_exceeded"


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
    messages = [Message(Role.SYSTEM, text[:30_000]), Message(Role.USER, text)]
    started = time.process_time()
    reply = decide(Request(messages, (SHELL, EDIT)))
    assert reply.text
    assert time.process_time() - started < 5


def test_hostile_results_are_survived():
    call = ToolCall("1", "bash", json.dumps({"command": "wc -l a.py; grep -n '' a.py"}))
    broken = ToolCall("2", "edit", "[1, 2")
    for result in ("1:def f(:\n2:" + "(" * 5_000, "99999:x\n1:y", "", "Ran tests\nFAILED ("):
        messages = [
            Message(Role.USER, "fix f"),
            Message(Role.ASSISTANT, "", (call, broken)),
            Message(Role.TOOL, result, (), "1"),
            Message(Role.TOOL, result, (), "2"),
        ]
        assert decide(Request(messages, (SHELL, EDIT)))


async def _ask(model, request):
    return await model.reply(request)


def test_an_error_while_deciding_is_done_in_production_and_loud_under_test():
    import asyncio

    request = Request([Message(Role.USER, None)], (SHELL,))  # type: ignore[arg-type]
    assert "DONE" in asyncio.run(_ask(OfflineModel(), request)).text
    with pytest.raises(TypeError):
        asyncio.run(_ask(OfflineModel(strict=True), request))


def test_usage_counts_a_quarter_of_the_characters():
    reply = decide(Request([Message(Role.USER, "x" * 400)]))
    assert reply.usage.calls == 1
    assert reply.usage.input_tokens == 100


SCRIPT = """
import sys; sys.path[:0] = [{here!r}]
import pathlib
from test_model import Driver
driver = Driver(pathlib.Path({root!r}))
for reply in driver.work():
    print(reply.text, [call.arguments for call in reply.calls])
"""


@pytest.mark.starts_processes
def test_the_hash_seed_changes_nothing(repository):
    outputs = []
    for seed in ("1", "2"):
        (repository / "shares/split.py").write_text(LIBRARY)
        script = SCRIPT.format(here=str(Path(__file__).parent), root=str(repository))
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
        environment["PYTHONPATH"] = str(Path.cwd())
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        )
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert "DONE" in outputs[0]


SEVERAL = SYSTEM + " You may call several tools in one reply."


class FirstCallOnly(Driver):
    """A scaffold that makes only the first call of a reply and forgets the others."""

    def work(self, steps=30):
        for _ in range(steps):
            reply = decide(Request(self.messages, self.tools))
            self.replies.append(reply)
            self.messages.append(Message(Role.ASSISTANT, reply.text, reply.calls[:1]))
            if not reply.calls:
                break
            result = self.execute(reply.calls[0])[: self.limit]
            self.messages.append(Message(Role.TOOL, result, (), reply.calls[0].id))
        return self.replies


def trials_of(replies):
    return [[c for c in reply.calls if c.name == "edit"] for reply in replies if "#c" in reply.text]


@pytest.mark.starts_processes
@pytest.mark.parametrize("kind", [Driver, FirstCallOnly])
def test_several_candidates_go_into_one_reply_and_the_one_that_passed_stays(repository, kind):
    driver = kind(repository)
    driver.messages[0] = Message(Role.SYSTEM, SEVERAL)
    replies = driver.work()
    assert replies[-1].text.endswith("DONE")
    assert "index < rest" in (repository / "shares" / "split.py").read_text()
    most = max(len(edits) for edits in trials_of(replies))
    assert most == 4 if kind is Driver else len(trials_of(replies)[1:2] or [[]][0]) <= 1


@pytest.mark.starts_processes
def test_without_the_guideline_a_reply_has_one_call(repository):
    replies = Driver(repository).work()
    assert {len(reply.calls) for reply in replies[:-1]} == {1}


@pytest.mark.starts_processes
def test_a_candidate_the_scaffold_left_out_is_tried_again(repository):
    driver = FirstCallOnly(repository)
    driver.messages[0] = Message(Role.SYSTEM, SEVERAL)
    replies = driver.work()
    later = [re.findall(r"#c[0-9a-f]{11}", reply.text) for reply in replies if "#c" in reply.text]
    assert all(len(marks) == 1 for marks in later[1:])
    if len(later) > 1:
        assert later[1][0] in later[0]


@pytest.mark.starts_processes
def test_of_several_that_pass_the_first_stays(repository):
    (repository / "tests" / "test_split.py").write_text(TEST.replace("[34, 33, 33]", "share(100, 3)"))
    driver = Driver(repository)
    driver.messages[0] = Message(Role.SYSTEM, SEVERAL)
    replies = driver.work()
    marks = [re.findall(r"#c([0-9a-f]{11})", reply.text) for reply in replies if "#c" in reply.text]
    assert len(marks) == 2
    assert marks[1] == marks[0][:1]
