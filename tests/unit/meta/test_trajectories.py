"""What agents write of their own work becomes messages, whatever its form."""

import json

import pytest

from dgm.messages import Message, Role, ToolCall
from dgm.meta.trajectories import MOST, TrajectoryForm, form_of, read_trajectory


def read(value):
    return list(read_trajectory(json.dumps(value).encode()))


SOLVED = [
    Message(Role.USER, "fix it"),
    Message(Role.ASSISTANT, "I look.", (ToolCall("c1", "bash", '{"command": "ls"}'),)),
    Message(Role.TOOL, "a.py"),
]


def test_chat_messages_of_mini_swe_agent():
    call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    found = {
        "trajectory_format": "mini-swe-agent-1.1",
        "info": {"exit_status": "Submitted"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "fix it"}]},
            {"role": "assistant", "content": "I look.", "tool_calls": [call], "extra": {"cost": 0.1}},
            {"role": "tool", "content": "a.py", "tool_call_id": "c1"},
            {"role": "exit", "content": "done"},
        ],
    }
    assert read(found) == SOLVED


def test_steps_of_atif():
    call = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}
    results = {"results": [{"source_call_id": "c1", "content": "a.py"}]}
    found = {
        "schema_version": "ATIF-v1.4",
        "steps": [
            {"step_id": 1, "source": "user", "message": "fix it"},
            {
                "step_id": 2,
                "source": "agent",
                "message": "I look.",
                "tool_calls": [call],
                "observation": results,
            },
        ],
    }
    assert read(found) == [*SOLVED[:2], Message(Role.TOOL, "a.py", call_id="c1")]


def test_events_of_openhands():
    found = [
        {"id": 0, "source": "user", "action": "message", "args": {"content": "fix it"}},
        {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "I look."}},
        {"id": 2, "source": "agent", "observation": "run", "content": "a.py"},
    ]
    ran = Message(Role.ASSISTANT, "I look.", (ToolCall("", "run", '{"command": "ls"}'),))
    assert read(found) == [SOLVED[0], ran, SOLVED[2]]
    lines = "\n".join(map(json.dumps, found)).encode()
    assert list(read_trajectory(lines)) == [SOLVED[0], ran, SOLVED[2]]


def test_separators_of_lines_within_a_text_end_no_value():
    found = [
        {"source": "user", "action": "message", "args": {"content": f"one{mark}two"}} for mark in "\u2028\x85"
    ]
    lines = "\r\n".join(json.dumps(each, ensure_ascii=False) for each in found).encode()
    assert [message.text for message in read_trajectory(lines)] == ["one\u2028two", "one\x85two"]


def test_newer_events_of_openhands():
    found = [
        {"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user", "content": "fix it"}},
        {
            "kind": "ActionEvent",
            "source": "agent",
            "thought": [{"type": "text", "text": "I look."}],
            "action": {"command": "ls"},
            "tool_name": "bash",
            "tool_call_id": "c1",
        },
        {"kind": "ObservationEvent", "source": "environment", "observation": {"content": [{"text": "a.py"}]}},
    ]
    assert read(found) == SOLVED


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
        b'[{"action": null}, {"observation": {"content": 3.5}, "action": {}}]'.replace(b"3.5", b"{}"),
    ],
)
def test_what_has_no_known_form_tells_nothing(data):
    assert not [message for message in read_trajectory(data) if message.text]


def test_a_very_long_one_is_cut():
    assert len(read([{"role": "user", "content": "x"}] * (MOST + 5))) == MOST


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (
            b'{"trajectory_format": "mini-swe-agent-1.1", "messages": []}',
            TrajectoryForm("mini-swe-agent-1.1", False),
        ),
        (b'{"schema_version": "ATIF-v1.6", "steps": []}', TrajectoryForm("ATIF-v1.6", False)),
        (b'{"schema_version": 3, "history": []}', TrajectoryForm("history", False)),
        (b'{"schema_version": "%b", "steps": []}' % (b"x" * 5000), TrajectoryForm("steps", False)),
        (b'[{"role": "user"}]', TrajectoryForm("messages", False)),
        (b'{"observation": "run"}\n{"action": "run"}\n', TrajectoryForm("events", True)),
    ],
)
def test_a_form_has_the_name_that_the_file_gives_itself(data, form):
    assert form_of(data) == form
