"""What agents write of their own work becomes messages, whatever its form."""

import json
from pathlib import Path

import pytest

from dgm.messages import Message, Role, ToolCall
from dgm.meta.trajectories import MOST, TrajectoryForm, form_of, join_files, read_trajectory

LOGS = {path.stem: path.read_bytes() for path in (Path(__file__).parent / "trajectories").iterdir()}
"""The same session as each program records it."""
SESSION = TrajectoryForm("session-log", is_lines=True)
FORMS = {
    "atif": TrajectoryForm("ATIF-v1.4", False),
    "claude-code": SESSION,
    "cline": TrajectoryForm("messages", False),
    "codex": SESSION,
    "gemini-cli": SESSION,
    "gemini-cli-older": TrajectoryForm("messages", False),
    "mini-swe-agent": TrajectoryForm("mini-swe-agent-1.1", False),
    "openhands": TrajectoryForm("events", True),
    "openhands-newer": TrajectoryForm("events", False),
    "pi": SESSION,
    "qwen-code": SESSION,
}


def test_every_log_has_a_form():
    assert LOGS.keys() == FORMS.keys()


@pytest.mark.parametrize("name", sorted(LOGS))
def test_a_log_holds_words_calls_and_results_once(name):
    messages = read_trajectory(LOGS[name])
    ident = "" if name == "openhands" else "c1"
    assert [(message.role, message.text, message.calls) for message in messages] == [
        (Role.USER, "fix it", ()),
        (Role.ASSISTANT, "I look.", (ToolCall(ident, "bash", '{"command": "ls"}'),)),
        (Role.TOOL, "a.py", ()),
        (Role.ASSISTANT, "DONE", ()),
    ]
    assert form_of(LOGS[name]) == FORMS[name]
    joined = join_files([LOGS[name], LOGS[name]])
    if FORMS[name].is_lines or name in ("cline", "atif"):
        assert len(read_trajectory(joined)) == (4 if name == "gemini-cli" else 8)
    assert join_files([LOGS[name]]) == LOGS[name]


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b'{"schema_version": 3, "history": []}', TrajectoryForm("history", False)),
        (b'{"schema_version": "%b", "steps": []}' % (b"x" * 5000), TrajectoryForm("steps", False)),
        (b'[{"role": "user"}]', TrajectoryForm("messages", False)),
    ],
)
def test_a_form_without_a_short_name_has_that_of_its_key(data, form):
    assert form_of(data) == form


def test_separators_of_lines_within_a_text_end_no_value():
    events = [
        {"source": "user", "action": "message", "args": {"content": f"one{mark}two"}} for mark in "\u2028\x85"
    ]
    lines = "\r\n".join(json.dumps(event, ensure_ascii=False) for event in events).encode()
    assert [message.text for message in read_trajectory(lines)] == ["one\u2028two", "one\x85two"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no JSON",
        b"[" * 100_000,
        b'{"messages": 3}',
        b'[1, null, "x"]',
        b'{"steps": [{"tool_calls": 3, "observation": {"results": "x"}}]}',
        b'{"messages": [{"role": "user", "content": {"a": 1}}, {"role": ["user"], "content": "x"}]}',
        b'[{"action": null}, {"observation": {"content": {}}, "action": {}}]',
    ],
)
def test_what_has_no_known_form_tells_nothing(data):
    assert not [message for message in read_trajectory(data) if message.text]


def test_a_very_long_one_is_cut():
    data = json.dumps([{"role": "user", "content": "x"}] * (MOST + 5)).encode()
    assert len(read_trajectory(data)) == MOST


def test_other_calls_and_a_compaction_of_codex_are_read():
    items = [
        {"type": "compacted", "payload": {"message": "So far: nothing."}},
        {
            "type": "response_item",
            "payload": {"type": "custom_tool_call", "call_id": "c", "name": "exec", "input": "x"},
        },
        {
            "type": "response_item",
            "payload": {"type": "local_shell_call", "call_id": "d", "action": {"command": ["ls"]}},
        },
    ]
    calls = ToolCall("c", "exec", "x"), ToolCall("d", "local_shell", '{"command": ["ls"]}')
    assert list(read_trajectory(b"\n".join(json.dumps(item).encode() for item in items))) == [
        Message(Role.USER, "So far: nothing."),
        Message(Role.ASSISTANT, "", calls),
    ]
