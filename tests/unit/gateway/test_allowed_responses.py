"""Requests for responses that pass as they are, and those that are refused by name."""

import json

import pytest

from dgm.gateway import allowed
from dgm.gateway.allowed import BadRequest
from dgm.gateway.translation import parse_document
from dgm.messages import WireProtocol
from tests.support.gateway.chat_passing import nested
from tests.support.gateway.responses_passing import CALL, ENCRYPTED, PASSING, TOOL, items, output, part, tools

PROTOCOL = WireProtocol.RESPONSES


def check(**body):
    given = parse_document(json.dumps({"input": "go", **body}).encode())
    allowed.check(PROTOCOL, given)


TODAY = {
    "no input": ({"input": None}, "input must be a list"),
    "empty input": ({"input": []}, "a list that is not empty"),
    "input an object": ({"input": {}}, "input must be a list"),
    "image": (part(type="input_image", image_url="http://example.org/a.png"), "image_url is an address"),
    "file": (part(type="input_file", file_url="http://example.org/a.pdf"), "file_url is an address"),
    "web search": (tools({"type": "web_search"}), "no tools of a provider"),
    "remote server": (tools({"type": "mcp", "server_url": "http://example.org"}), "'mcp' is not offered"),
    "call of a provider's tool": (items({"type": "web_search_call", "id": "ws_1"}), "'web_search_call'"),
    "single item": (items({"type": "item_reference", "id": "msg_1"}), "previous_response_id"),
    "bare reference": (items({"id": "msg_1"}), "previous_response_id"),
    "stored conversation": ({"conversation": "conv_1"}, "conversation is not offered"),
    "stored prompt": ({"prompt": {"id": "p"}}, "prompt is not offered"),
    "background": ({"background": True}, "background is not offered"),
    "sources of a search": ({"include": ["web_search_call.action.sources"]}, "include[0]"),
    "choice of a provider's tool": ({"tool_choice": {"type": "file_search"}}, "'file_search' is not offered"),
    "empty previous": ({"previous_response_id": ""}, "no earlier answer"),
}

NEW = {
    "answer of another job": ({"previous_response_id": "resp_8_1"}, "there is no earlier answer 'resp_8_1'"),
    "answer whose id is an object": ({"previous_response_id": {"id": "r"}}, "no earlier answer"),
    "file search": (
        tools({"type": "file_search", "vector_store_ids": ["vs_1"]}),
        "'file_search' is not offered",
    ),
    "dated search": (tools({"type": "web_search_2025_08_26"}), "'web_search_2025_08_26' is not offered"),
    "dated preview": (tools({"type": "web_search_preview_2025_03_11"}), "is not offered"),
    "code": (tools({"type": "code_interpreter", "container": {"type": "auto"}}), "no tools of a provider"),
    "pictures": (tools({"type": "image_generation"}), "'image_generation' is not offered"),
    "programs that call tools": (tools({"type": "programmatic_tool_calling"}), "run at the provider"),
    "search among tools": (
        tools({"type": "tool_search", "execution": "client"}),
        "'tool_search' is not offered",
    ),
    "tool of nobody": (tools({"type": "teleport"}), "'teleport' is not known"),
    "tool of another protocol": (tools({"type": "bash_20250124", "name": "bash"}), "'bash_20250124'"),
    "shell in a container": (
        tools({"type": "shell", "environment": {"type": "container_auto"}}),
        "only local is offered",
    ),
    "shell in a named container": (
        tools({"type": "shell", "environment": {"type": "container_reference", "container_id": "c"}}),
        "only local is offered",
    ),
    "local shell with a stored skill": (
        tools({"type": "shell", "environment": {"type": "local", "skills": [{"skill_id": "s"}]}}),
        "skill_id is not offered",
    ),
    "container within the agent's own environment": (
        tools({"type": "shell", "environment": {"type": "local", "container": "c"}}),
        "container is not offered",
    ),
    "address beside additional tools": (
        items(
            {"type": "additional_tools", "role": "developer", "tools": [], "tools_url": "https://a.example"}
        ),
        "tools_url is an address",
    ),
    "program calls a function": (
        tools({**TOOL, "allowed_callers": ["programmatic"]}),
        "allowed_callers must name 'direct'",
    ),
    "search in a namespace": (
        tools({"type": "namespace", "name": "n", "tools": [{"type": "mcp", "server_label": "s"}]}),
        "tools[0].tools[0]",
    ),
    "additional tools of a provider": (
        items({"type": "additional_tools", "role": "developer", "tools": [{"type": "web_search"}]}),
        "input[0].tools[0]: 'web_search'",
    ),
    "additional shell in a container": (
        items(
            {
                "type": "additional_tools",
                "role": "developer",
                "tools": [{"type": "shell", "environment": {"type": "container_auto"}}],
            }
        ),
        "only local is offered",
    ),
    "choice of a remote server": (
        {"tool_choice": {"type": "mcp", "server_label": "s"}},
        "'mcp' is not offered",
    ),
    "search among the allowed tools": (
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search_preview"}]}},
        "'web_search_preview' is not offered",
    ),
    "programs as a choice": ({"tool_choice": {"type": "programmatic_tool_calling"}}, "run at the provider"),
    "results of a stored search": ({"include": ["file_search_call.results"]}, "is not offered here: it runs"),
    "outputs of code": ({"include": ["code_interpreter_call.outputs"]}, "is not offered here: it runs"),
    "include of nobody": ({"include": ["secrets"]}, "'secrets' is not known"),
    "stored file": (part(type="input_file", file_id="file-1"), "file_id is not offered"),
    "stored image": (part(type="input_image", file_id="file-1"), "file_id is not offered"),
    "stored file as a result": (
        items(output([{"type": "input_file", "file_id": "file-1"}])),
        "input[0].output[0].file_id",
    ),
    "image by url as a result": (
        items(output([{"type": "input_image", "image_url": "https://a.example"}])),
        "input[0].output[0].image_url",
    ),
    "file by url in a custom result": (
        items(output([{"type": "input_file", "file_url": "https://a.example"}], "custom_tool_call_output")),
        "input[0].output[0].file_url",
    ),
    "stored screenshot": (
        items(output({"type": "computer_screenshot", "file_id": "file-1"}, "computer_call_output")),
        "file_id is not offered",
    ),
    "screenshot by url": (
        items(
            output({"type": "computer_screenshot", "image_url": "https://a.example"}, "computer_call_output")
        ),
        "image_url is an address",
    ),
    "file's data an address": (
        part(type="input_file", file_data="https://a.example/a.pdf"),
        "file_data is an",
    ),
    "address under an unknown key": (
        items({**CALL, "more": {"deep": [{"source_url": "https://a.example"}]}}),
        "input[0].more.deep[0].source_url",
    ),
    "stored file in an annotation": (
        items(
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "output_text",
                        "text": "a",
                        "annotations": [{"type": "file_path", "file_id": "f"}],
                    }
                ],
            }
        ),
        "annotations[0].file_id",
    ),
    "call by a program": (
        items({**CALL, "caller": {"type": "program", "caller_id": "p"}}),
        "only direct is offered",
    ),
    "program": (items({"type": "program", "id": "p", "code": "x"}), "'program' is not offered"),
    "shell call in a container": (
        items(
            {
                "type": "shell_call",
                "call_id": "c",
                "action": {},
                "environment": {"type": "container_reference", "container_id": "c"},
            }
        ),
        "only local is offered",
    ),
    "remote call": (items({"type": "mcp_call", "id": "m"}), "'mcp_call' is not offered"),
    "approval of a remote call": (items({"type": "mcp_approval_response"}), "'mcp_approval_response'"),
    "call of code": (items({"type": "code_interpreter_call", "id": "c"}), "'code_interpreter_call'"),
    "picture that was made": (items({"type": "image_generation_call", "id": "i"}), "'image_generation_call'"),
    "search of files": (items({"type": "file_search_call", "id": "f"}), "'file_search_call' is not offered"),
    "tools that were found": (items({"type": "tool_search_output", "tools": []}), "'tool_search_output'"),
    "provider's tool in an update": (
        items({"type": "configuration_update", "tools": [{"type": "web_search"}]}),
        "input[0].tools[0]: 'web_search' is not offered",
    ),
    "callers a number": (tools({**TOOL, "allowed_callers": 5}), "allowed_callers must name 'direct'"),
    "include an object": ({"include": {"web_search_call.results": 1}}, "include must be a list"),
    "compaction by its id": (items({"type": "compaction", "id": "cmp_1"}), "encrypted_content"),
    "compaction now": (items({"type": "compaction_trigger"}), "'compaction_trigger' is not offered"),
    "compaction later": (
        {"context_management": [{"type": "compaction"}]},
        "context_management is not offered",
    ),
    "item of nobody": (items({"type": "telegram"}), "'telegram' is not known"),
    "item a text": (items("x"), "input[0] must be an object"),
    "dear thinking": ({"reasoning": {"mode": "pro"}}, "reasoning.mode is not offered"),
    "dear service": ({"service_tier": "ultrafast"}, "service_tier must be one of"),
    "a warmed cache": ({"prompt_cache_options": {"prewarm": True}}, "prewarm is not offered"),
    "another one's cache": (
        {"prompt_cache_options": {"comparison_response_id": "resp_1"}},
        "comparison_response_id is not offered",
    ),
    "program of the account": (
        {"access_programs": {"cyber": "daybreak_red"}},
        "access_programs is not offered",
    ),
    "moderation": ({"moderation": {"model": "m"}}, "moderation is not offered"),
    "search by a plug-in": ({"plugins": [{"id": "web"}]}, "plugins is not offered"),
    "limit zero": ({"max_output_tokens": 0}, "max_output_tokens must be a whole number"),
    "stream a number": ({"stream": 1}, "stream must be true or false"),
    "deep body": ({"metadata": nested(70)}, "nested deeper than 64"),
}
REFUSED = {**TODAY, **NEW}


@pytest.mark.parametrize("name", PASSING)
def test_request_passes(name):
    check(**PASSING[name])


@pytest.mark.parametrize("name", REFUSED)
def test_request_is_refused_in_clear_words(name):
    body, words = REFUSED[name]
    with pytest.raises(BadRequest) as caught:
        check(**body)
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_no_earlier_answer_is_known_by_itself():
    with pytest.raises(BadRequest) as caught:
        allowed.check(PROTOCOL, {"input": "go", "previous_response_id": "resp_7_1"})
    assert caught.value.code == "previous_response_not_found"


def test_nothing_is_stored_and_reasoning_travels():
    body = {"input": "go", "store": True, "conversation": None, "background": False}
    allowed.check(PROTOCOL, body)
    assert allowed.prepare(PROTOCOL, body) == {"input": "go", "store": False, "include": [ENCRYPTED]}
    kept = ["message.output_text.logprobs", ENCRYPTED]
    assert allowed.prepare(PROTOCOL, {"input": "go", "include": kept})["include"] == kept


def test_shell_without_an_environment_is_the_agents_own():
    sent = allowed.prepare(PROTOCOL, {"input": "go", "tools": [{"type": "shell", "environment": {}}, TOOL]})
    assert sent["tools"] == [{"type": "shell", "environment": {"type": "local"}}, TOOL]
