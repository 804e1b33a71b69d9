"""What agents write of their own work becomes messages, whatever its form."""

import json

import pytest

from dgm.messages import Message, Role, ToolCall
from dgm.meta.trajectories import MOST, TrajectoryForm, form_of, join_files, read_trajectory


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


RAN = ToolCall("c1", "bash", '{"command": "ls"}')
PARTS = {
    "anthropic": (
        [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "bash", "input": {"command": "ls"}},
        ],
        [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "a.py"}]}],
    ),
    "google": (
        [{"text": "I look."}, {"functionCall": {"id": "c1", "name": "bash", "args": {"command": "ls"}}}],
        [{"functionResponse": {"id": "c1", "name": "bash", "response": {"output": "a.py"}}}],
    ),
}
CLAUDE_CODE = [
    {"type": "queue-operation", "operation": "enqueue", "sessionId": "s"},
    {"type": "user", "uuid": "1", "message": {"role": "user", "content": "fix it"}},
    *(
        {
            "type": "assistant",
            "uuid": part["type"],
            "message": {"id": "m", "role": "assistant", "content": [part]},
        }
        for part in PARTS["anthropic"][0]
    ),
    {
        "type": "user",
        "uuid": "4",
        "message": {"role": "user", "content": PARTS["anthropic"][1]},
        "toolUseResult": {},
    },
    {
        "type": "assistant",
        "uuid": "5",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "DONE"}]},
    },
    {"type": "system", "subtype": "turn_duration", "durationMs": 5},
]
CODEX = [
    {
        "type": "session_meta",
        "payload": {"id": "s", "cwd": "/work", "base_instructions": {"text": "You are"}},
    },
    {"type": "event_msg", "payload": {"type": "user_message", "message": "fix it"}},
    *(
        {"type": "response_item", "payload": item}
        for item in (
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "fix it"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "x"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "name": "bash", "arguments": '{"command": "ls"}', "call_id": "c1"},
            {"type": "function_call_output", "call_id": "c1", "output": "a.py"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "DONE"}]},
        )
    ),
    {"type": "turn_context", "payload": {"model": "m"}},
]
QWEN = [
    {"type": "user", "uuid": "1", "message": {"role": "user", "parts": [{"text": "fix it"}]}},
    {"type": "system", "uuid": "2", "subtype": "ui_telemetry", "systemPayload": {"uiEvent": {}}},
    {"type": "assistant", "uuid": "3", "message": {"role": "model", "parts": PARTS["google"][0]}},
    {"type": "tool_result", "uuid": "4", "message": {"role": "user", "parts": PARTS["google"][1]}},
    {"type": "assistant", "uuid": "5", "message": {"role": "model", "parts": [{"text": "DONE"}]}},
]
CALLED = {
    "id": "c1",
    "name": "bash",
    "args": {"command": "ls"},
    "result": PARTS["google"][1],
    "status": "success",
}
GEMINI = [
    {"sessionId": "s", "projectHash": "h", "kind": "main"},
    {"$set": {"messages": [{"id": "1", "type": "user", "content": [{"text": "fix it"}]}]}},
    {"id": "2", "type": "gemini", "content": "I look.", "thoughts": []},
    {"$set": {"lastUpdated": "2026-11-28T17:22:38.619Z"}},
    {"id": "2", "type": "gemini", "content": "I look.", "thoughts": [], "toolCalls": [CALLED]},
    {"id": "3", "type": "user", "content": PARTS["google"][1]},
    {"id": "4", "type": "gemini", "content": "DONE"},
]
GEMINI_JSON = {
    "sessionId": "s",
    "messages": [
        {"id": "1", "type": "user", "content": "fix it"},
        {"id": "2", "type": "gemini", "content": "I look.", "toolCalls": [CALLED]},
        {"id": "4", "type": "gemini", "content": "DONE"},
    ],
}
CLINE = {
    "version": 1,
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "fix it"}]},
        {"role": "assistant", "content": PARTS["anthropic"][0]},
        {"role": "user", "content": PARTS["anthropic"][1]},
        {"role": "assistant", "content": [{"type": "text", "text": "DONE"}]},
    ],
}
PI = [
    {"type": "session", "version": 3, "id": "s"},
    {
        "type": "message",
        "id": "1",
        "message": {"role": "user", "content": [{"type": "text", "text": "fix it"}]},
    },
    {
        "type": "message",
        "id": "2",
        "message": {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "ls"}},
            ],
        },
    },
    {
        "type": "message",
        "id": "3",
        "message": {"role": "toolResult", "toolCallId": "c1", "content": [{"type": "text", "text": "a.py"}]},
    },
    {
        "type": "message",
        "id": "4",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "DONE"}]},
    },
]


def lines(items):
    return b"\n".join(json.dumps(item).encode() for item in items)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(lines(CLAUDE_CODE), id="claude-code"),
        pytest.param(lines(CODEX), id="codex"),
        pytest.param(lines(QWEN), id="qwen-code"),
        pytest.param(lines(GEMINI), id="gemini-cli"),
        pytest.param(json.dumps(GEMINI_JSON).encode(), id="gemini-cli-json"),
        pytest.param(json.dumps(CLINE).encode(), id="cline"),
        pytest.param(lines(PI), id="pi"),
    ],
)
def test_session_logs_of_programs_hold_words_calls_and_results_once(data):
    messages = [(message.role, message.text, message.calls) for message in read_trajectory(data)]
    assert messages == [
        (Role.USER, "fix it", ()),
        (Role.ASSISTANT, "I look.", (RAN,)),
        (Role.TOOL, "a.py", ()),
        (Role.ASSISTANT, "DONE", ()),
    ]


def test_a_session_log_names_its_form():
    assert form_of(lines(PI)) == TrajectoryForm("session-log", is_lines=True)


def test_several_files_are_joined_to_one_that_reads_as_all_of_them():
    joined = join_files([json.dumps(CLINE, indent=1).encode(), json.dumps(CLINE).encode()])
    assert len(read_trajectory(joined)) == 8
    assert len(read_trajectory(join_files([lines(CODEX), lines(CODEX)]))) == 8
    assert join_files([lines(CODEX)]) == lines(CODEX)


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
    assert list(read_trajectory(lines(items))) == [
        Message(Role.USER, "So far: nothing."),
        Message(
            Role.ASSISTANT,
            "",
            (ToolCall("c", "exec", "x"), ToolCall("d", "local_shell", '{"command": ["ls"]}')),
        ),
    ]
