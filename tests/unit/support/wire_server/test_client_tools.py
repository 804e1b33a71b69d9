"""Tools that the provider knows and its client works: offered, called and answered in each vendor's own form."""

import json

import pytest

from dgm.messages import Reply, Role, Stop, ToolCall
from tests.support import wire_conversations as talk
from tests.support.wire_server import Scripted, WireServer

pytestmark = pytest.mark.slow

SHELL = {"type": "shell", "environment": {"type": "local"}}
NOTE = {"type": "custom", "name": "note", "description": "takes text", "format": {"type": "text"}}
PATCH = {"type": "update_file", "path": "a.txt", "diff": "@@\n-a\n+b\n"}
CALLS = (
    ToolCall("call_1", "shell", json.dumps({"commands": ["ls"]})),
    ToolCall("call_2", "note", 'free "text"\nin two lines'),
    ToolCall("call_3", "apply_patch", json.dumps(PATCH)),
    ToolCall("call_4", "local_shell", json.dumps({"type": "exec", "command": ["ls"], "env": {}})),
)
TOOLS = [SHELL, NOTE, {"type": "apply_patch"}, {"type": "local_shell"}]
RESULTS = [
    {
        "type": "shell_call_output",
        "call_id": "call_1",
        "output": [{"stdout": "a.txt\n", "stderr": "!", "outcome": {"type": "exit", "exit_code": 0}}],
    },
    {"type": "custom_tool_call_output", "call_id": "call_2", "output": "noted"},
    {"type": "apply_patch_call_output", "call_id": "call_3", "status": "failed", "output": "no such line"},
    {"type": "local_shell_call_output", "id": "call_4", "output": "a.txt"},
]
BASH = {"type": "bash_20250124", "name": "bash", "cache_control": {"type": "ephemeral"}}
EDITOR = {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 100}


def calling(calls, last="Done."):
    return WireServer(brain=Scripted([Reply("I look.", calls, Stop.TOOL_CALLS), Reply(last)]))


@pytest.mark.parametrize("streaming", [False, True])
def test_responses_calls_each_type_of_tool_and_takes_its_result(streaming):
    with calling(CALLS) as server, talk.openai_client(server) as client:
        asked = {"model": talk.GPT, "tools": TOOLS}
        if streaming:
            with client.responses.stream(input="look", **asked) as stream:
                kinds = {event.type for event in stream}
                said = stream.get_final_response()
            assert "response.custom_tool_call_input.delta" in kinds
        else:
            said = client.responses.create(input="look", **asked)
        _, shell, note, patch, local = said.output
        assert (shell.type, shell.action.commands) == ("shell_call", ["ls"])
        assert (note.type, note.name, note.input) == ("custom_tool_call", "note", CALLS[1].arguments)
        assert (patch.type, patch.operation.path) == ("apply_patch_call", "a.txt")
        assert (local.type, local.action.command) == ("local_shell_call", ["ls"])
        items = [item.to_dict(mode="json") for item in said.output]
        client.responses.create(input=[{"role": "user", "content": "look"}, *items, *RESULTS], **asked)
    heard = server.app.config.brain.asked[1].messages
    assert [json.loads(call.arguments) for call in heard[1].calls if call.name != "note"] == [
        json.loads(call.arguments) for call in CALLS if call.name != "note"
    ]
    assert [(m.call_id, m.text, m.failed) for m in heard if m.role is Role.TOOL] == [
        ("call_1", "a.txt\n!", False),
        ("call_2", "noted", False),
        ("call_3", "no such line", True),
        ("call_4", "a.txt", False),
    ]


@pytest.mark.parametrize("streaming", [False, True])
def test_chat_calls_a_custom_tool_and_takes_its_result(streaming):
    tools = [{"type": "custom", "custom": {"name": "note", "format": {"type": "text"}}}, talk.CHAT_TOOL]
    asked = {"model": talk.GPT, "tools": tools}
    user = {"role": "user", "content": "look"}
    with calling((CALLS[1], talk.CALLS[1])) as server, talk.openai_client(server) as client:
        if streaming:
            chunks = client.chat.completions.create(messages=[user], stream=True, **asked)
            parts = [part for chunk in chunks for part in chunk.choices[0].delta.tool_calls or ()]
            told = "".join(part.to_dict().get("custom", {}).get("input", "") for part in parts)
            assert told == CALLS[1].arguments
            return
        said = client.chat.completions.create(messages=[user], **asked).choices[0].message
        note, bash = said.tool_calls
        assert (note.type, note.custom.name, note.custom.input) == ("custom", "note", CALLS[1].arguments)
        assert bash.type == "function"
        turn = said.to_dict(mode="json")
        results = [{"role": "tool", "tool_call_id": call.id, "content": "ok"} for call in said.tool_calls]
        client.chat.completions.create(messages=[user, turn, *results], **asked)
    assert server.app.config.brain.asked[1].messages[1].calls == (CALLS[1], talk.CALLS[1])


def test_messages_offers_the_vendors_bash_and_editor():
    with calling((ToolCall("toolu_1", "bash", json.dumps({"command": "ls"})),)) as server:
        with talk.anthropic_client(server) as client:
            said = client.messages.create(
                model=talk.CLAUDE,
                max_tokens=100,
                tools=[BASH, EDITOR],
                messages=[{"role": "user", "content": "look"}],
            )
        assert said.content[1].input == {"command": "ls"}
        assert [tool.name for tool in server.app.config.brain.asked[0].tools] == ["bash", EDITOR["name"]]


@pytest.mark.parametrize(
    ("path", "tool", "said"),
    [
        ("/v1/messages", {**BASH, "name": "shell"}, "tools.0.bash_20250124.name: Input should be 'bash'"),
        ("/v1/messages", {**BASH, "type": "bash_19990101"}, "is not offered by this server"),
        ("/v1/messages", {**EDITOR, "input_schema": {"type": "object"}}, "Extra inputs are not permitted"),
        ("/v1/responses", {"type": "shell", "environment": {"type": "container_auto"}}, "has no containers"),
        ("/v1/responses", {"type": "web_search"}, "Invalid value: 'web_search'"),
        ("/v1/responses", {**NOTE, "format": {"type": "xml"}}, "Invalid value: 'xml'"),
    ],
)
def test_a_tool_that_is_none_is_refused(path, tool, said):
    with WireServer() as server:
        answer = talk.raw(server, path, talk.small(path, tools=[tool]))
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"type": "shell_call_output", "call_id": "call_9", "output": []}, "No tool call found"),
        ({"type": "apply_patch_call_output", "call_id": "call_9", "output": "x"}, "status"),
        (
            {"type": "shell_call", "id": "fc_1", "call_id": "call_1", "action": {"commands": []}},
            "begins with 'sh'",
        ),
    ],
)
def test_an_item_that_fits_nothing_is_refused(item, said):
    with WireServer() as server:
        answer = talk.raw(server, "/v1/responses", {"model": talk.GPT, "input": [item], "tools": TOOLS})
    assert answer.status_code == 400
    assert said in answer.json()["error"]["message"]


def test_a_conversation_kept_by_the_provider_is_refused_in_the_word_that_its_client_knows():
    with WireServer() as server:
        body = talk.small("/v1/messages", thread={"type": "create"})
        error = talk.raw(server, "/v1/messages", body).json()["error"]
    assert error["details"] == {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
