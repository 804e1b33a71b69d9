"""Requests for responses that pass as they are, and those that are refused by name."""

import json

import pytest

from dgm.gateway import parsing
from dgm.gateway.allowed import responses
from dgm.gateway.wire import BadRequest
from tests.unit.gateway.test_allowed_chat import PIXEL, nested
from tests.unit.wire_bench import SCHEMA

TOOL = {"type": "function", "name": "bash", "description": "Run it.", "parameters": SCHEMA, "strict": True}
CALL = {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": "{}"}
ENCRYPTED = "reasoning.encrypted_content"
DIRECT = {"caller": {"type": "direct"}}


def check(**body):
    given = parsing.document(json.dumps({"input": "go", **body}).encode())
    responses.check(given, known=lambda answer: answer == "resp_7_1")


def output(told, kind="function_call_output"):
    return {"type": kind, "call_id": "call_1", "output": told}


def part(**given):
    return {"input": [{"role": "user", "content": [given]}]}


def items(*given):
    return {"input": list(given)}


def tools(*given):
    return {"tools": list(given)}


PASSING = {
    # Programs as they ask.
    "openai-agents": {
        "model": "default",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "go"}],
        "include": [],
        "tools": [TOOL],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "store": False,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}},
        "truncation": "auto",
        "metadata": {"a": "b"},
        "prompt_cache_retention": "24h",
        "stream": True,
    },
    "openai-agents, the next turn": items(
        {"role": "user", "content": "go"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA", "status": None},
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "status": "completed",
            "phase": "commentary",
            "content": [{"type": "output_text", "text": "Let me look.", "annotations": [], "logprobs": []}],
        },
        {**CALL, "id": "fc_1", "status": "completed"},
        output("a.py"),
    ),
    "openai-agents, going on from an answer": {"previous_response_id": "resp_7_1", "input": [output("a.py")]},
    "Codex": {
        "instructions": "You are a coding agent.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}],
        "tools": [
            TOOL,
            {"type": "local_shell"},
            {"type": "custom", "name": "apply_patch", "format": {"type": "text"}},
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": [ENCRYPTED],
        "prompt_cache_key": "p",
        "text": {"verbosity": "low"},
    },
    "mini-swe-agent by responses": {
        "input": [{"role": "system", "content": "s"}, {"role": "user", "content": "u"}],
        "tools": [TOOL],
        "reasoning": {"effort": "high"},
        "stream": None,
    },
    "LangChain, structured output": {
        "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA, "strict": True}}
    },
    # What shapes an answer.
    "cutting input (refused until passing through)": {"truncation": "auto"},
    "form of the answer (refused until passing through)": {
        "text": {"format": {"type": "json_schema", "name": "a", "schema": {}}}
    },
    "verbosity": {"text": {"verbosity": "high"}},
    "logprobs": {"top_logprobs": 5, "include": ["message.output_text.logprobs"]},
    "flexible service": {"service_tier": "flex"},
    "thoughts of all turns": {"reasoning": {"context": "all_turns", "mode": "standard"}},
    "images as they are": {"image": {"context_compression": "disabled"}},
    "bookkeeping": {
        "user": "u",
        "metadata": {"a": "b"},
        "store": True,
        "include": [ENCRYPTED],
        "service_tier": "auto",
        "truncation": "disabled",
        "background": False,
        "prompt_cache_key": "p",
        "prompt_cache_options": {"mode": "explicit", "ttl": "30m"},
        "max_tool_calls": 3,
        "context_management": [],
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "conversation": None,
        "moderation": None,
    },
    "vLLM": {"top_k": 20, "repetition_penalty": 1.1, "chat_template_kwargs": {"enable_thinking": True}},
    # Tools that the agent executes.
    "custom tool (refused until passing through)": tools({"type": "custom", "name": "c"}),
    "custom tool with a grammar": {
        **tools(
            {
                "type": "custom",
                "name": "c",
                "format": {"type": "grammar", "syntax": "regex", "definition": "x+"},
            }
        ),
        "tool_choice": {"type": "custom", "name": "c"},
    },
    "local shell": tools({"type": "local_shell"}),
    "shell": {**tools({"type": "shell"}), "tool_choice": {"type": "shell"}},
    "shell of the agent": tools(
        {"type": "shell", "environment": {"type": "local"}, "allowed_callers": ["direct"]}
    ),
    "shell of the agent with its skills": tools(
        {
            "type": "shell",
            "environment": {
                "type": "local",
                "skills": [{"name": "s", "description": "d", "path": "/skills/s"}],
            },
        }
    ),
    "apply_patch": {**tools({"type": "apply_patch"}), "tool_choice": {"type": "apply_patch"}},
    "computer": tools({"type": "computer"}),
    "computer, preview": tools(
        {"type": "computer_use_preview", "display_width": 1024, "display_height": 768, "environment": "linux"}
    ),
    "namespace": tools({"type": "namespace", "name": "n", "description": "d", "tools": [TOOL]}),
    "function that answers later": tools(
        {**TOOL, "async": True, "output_schema": {"url": "https://a.example"}}
    ),
    "choice among some": {
        **tools(TOOL, {"type": "shell"}),
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "bash"}, {"type": "shell"}],
        },
    },
    "choice of a function": {**tools(TOOL), "tool_choice": {"type": "function", "name": "bash"}},
    # The history.
    "custom call (refused until passing through)": items(
        {"type": "custom_tool_call", "call_id": "call_1", "name": "c", "input": "x", **DIRECT},
        output("y", "custom_tool_call_output"),
    ),
    "call in a namespace (refused until passing through)": items({**CALL, "namespace": "n"}),
    "calls of a shell": items(
        {
            "type": "shell_call",
            "id": "sh_1",
            "call_id": "call_1",
            "action": {"commands": ["ls"], "timeout_ms": 1000, "max_output_length": 100},
            "environment": {"type": "local"},
            "status": "completed",
        },
        {
            **output([], "shell_call_output"),
            "output": [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            "max_output_length": 100,
        },
    ),
    "calls of a local shell": items(
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "call_1",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {"url": "https://a.example"}},
        },
        {"type": "local_shell_call_output", "id": "call_1", "output": '{"output": "a"}'},
    ),
    "calls of apply_patch": items(
        {
            "type": "apply_patch_call",
            "call_id": "call_1",
            "status": "completed",
            "operation": {"type": "update_file", "path": "a.py", "diff": "@@"},
        },
        {"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed", "output": "ok"},
    ),
    "calls of a computer": items(
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "call_1",
            "action": {"type": "click", "x": 1, "y": 2},
        },
        {
            "type": "computer_call_output",
            "call_id": "call_1",
            "output": {"type": "computer_screenshot", "image_url": PIXEL},
        },
    ),
    "compaction that the agent holds": items({"type": "compaction", "encrypted_content": "gAAAA"}),
    "other wishes in mid-conversation": items(
        {"type": "configuration_update", "reasoning": {"effort": "low"}}
    ),
    "other tools in mid-conversation": items(
        {"type": "additional_tools", "role": "developer", "tools": [TOOL]}
    ),
    "sources of an earlier answer": items(
        {
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "a",
                    "annotations": [{"type": "url_citation", "url": "https://a.example", "title": "t"}],
                }
            ],
        }
    ),
    "reasoning in the clear": items(
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]}
    ),
    "prefilled answer": items({"role": "user", "content": "go"}, {"role": "assistant", "content": "It is ("}),
    # Media inline.
    "image inline": part(type="input_image", image_url=PIXEL, detail="low"),
    "document inline": part(
        type="input_file", filename="a.pdf", file_data="data:application/pdf;base64,JVBE"
    ),
    "image as a result": items(output([{"type": "input_image", "image_url": PIXEL}])),
}


TODAY = {
    "no input": ({"input": None}, "input must be a list"),
    "empty input": ({"input": []}, "input must not be empty"),
    "input an object": ({"input": {}}, "input must be a list"),
    "image": (part(type="input_image", image_url="http://example.org/a.png"), "image_url is an address"),
    "file": (part(type="input_file", file_url="http://example.org/a.pdf"), "file_url is an address"),
    "image as a result, empty": (items(output([{"type": "input_image"}])), "output[0].image_url"),
    "web search": (tools({"type": "web_search"}), "no tools of a provider"),
    "remote server": (tools({"type": "mcp", "server_url": "http://example.org"}), "'mcp' is not offered"),
    "call of a provider's tool": (items({"type": "web_search_call", "id": "ws_1"}), "'web_search_call'"),
    "custom call without name": (items({"type": "custom_tool_call", "call_id": "c"}), "input[0].name"),
    "single item": (items({"type": "item_reference", "id": "msg_1"}), "previous_response_id"),
    "bare reference": (items({"id": "msg_1"}), "previous_response_id"),
    "no role": (items({"content": "x"}), "input[0].role"),
    "stored conversation": ({"conversation": "conv_1"}, "conversation is not offered"),
    "stored prompt": ({"prompt": {"id": "p"}}, "prompt is not offered"),
    "background": ({"background": True}, "background is not offered"),
    "sources of a search": ({"include": ["web_search_call.action.sources"]}, "include[0]"),
    "unknown key": ({"messages": []}, "messages is not known here"),
    "unknown key of reasoning": ({"reasoning": {"budget": 4}}, "reasoning.budget"),
    "call without id": (items({**CALL, "call_id": None}), "call_id"),
    "choice of a provider's tool": ({"tool_choice": {"type": "file_search"}}, "'file_search' is not offered"),
    "empty previous": ({"previous_response_id": ""}, "must not be empty"),
}

NEW = {
    "answer of another job": ({"previous_response_id": "resp_8_1"}, "there is no earlier answer 'resp_8_1'"),
    "answer whose id is an object": ({"previous_response_id": {"id": "r"}}, "must be a text"),
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
    "tool of nobody": (tools({"type": "teleport"}), "'teleport' are not known"),
    "tool of another protocol": (tools({"type": "bash_20250124", "name": "bash"}), "'bash_20250124'"),
    "shell in a container": (
        tools({"type": "shell", "environment": {"type": "container_auto"}}),
        "environment must be of the type 'local'",
    ),
    "shell in a named container": (
        tools({"type": "shell", "environment": {"type": "container_reference", "container_id": "c"}}),
        "environment must be",
    ),
    "local shell with a stored skill": (
        tools({"type": "shell", "environment": {"type": "local", "skills": [{"skill_id": "s"}]}}),
        "skill_id is not offered",
    ),
    "program calls a function": (
        tools({**TOOL, "allowed_callers": ["programmatic"]}),
        "allowed_callers must be",
    ),
    "function that is loaded late": (tools({**TOOL, "defer_loading": True}), "defer_loading must be"),
    "search in a namespace": (
        tools({"type": "namespace", "name": "n", "tools": [{"type": "mcp", "server_label": "s"}]}),
        "tools[0].tools[0]",
    ),
    "late function in a namespace": (
        tools({"type": "namespace", "name": "n", "tools": [{**TOOL, "defer_loading": True}]}),
        "tools[0].tools[0].defer_loading",
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
        "environment must be",
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
    "results of a stored search": ({"include": ["file_search_call.results"]}, "include[0] is not offered"),
    "outputs of code": ({"include": ["code_interpreter_call.outputs"]}, "include[0] is not offered"),
    "include of nobody": ({"include": ["secrets"]}, "include[0] must be one of"),
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
        "caller is not offered",
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
        "environment must be",
    ),
    "remote call": (items({"type": "mcp_call", "id": "m"}), "'mcp_call' is not offered"),
    "approval of a remote call": (items({"type": "mcp_approval_response"}), "'mcp_approval_response'"),
    "call of code": (items({"type": "code_interpreter_call", "id": "c"}), "'code_interpreter_call'"),
    "picture that was made": (items({"type": "image_generation_call", "id": "i"}), "'image_generation_call'"),
    "search of files": (items({"type": "file_search_call", "id": "f"}), "'file_search_call' is not offered"),
    "tools that were found": (items({"type": "tool_search_output", "tools": []}), "'tool_search_output'"),
    "compaction by its id": (items({"type": "compaction", "id": "cmp_1"}), "encrypted_content"),
    "compaction now": (items({"type": "compaction_trigger"}), "'compaction_trigger' is not offered"),
    "compaction later": (
        {"context_management": [{"type": "compaction"}]},
        "context_management is not offered",
    ),
    "item of nobody": (items({"type": "telegram"}), "'telegram' are not known"),
    "item a text": (items("x"), "input[0] must be an object"),
    "dear thinking": ({"reasoning": {"mode": "pro"}}, "reasoning.mode must be"),
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
    "instructions a list": ({"instructions": []}, "instructions must be a text"),
    "deep schema": (tools({**TOOL, "parameters": nested(60)}), "nested deeper"),
    "deep body": ({"metadata": nested(70)}, "nested deeper than 64"),
    "two tools of one name": (tools(TOOL, TOOL), "another tool of the name 'bash'"),
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
        responses.check({"input": "go", "previous_response_id": "resp_7_1"})
    assert caught.value.code == "previous_response_not_found"


def test_nothing_is_stored_and_reasoning_travels():
    body = {"input": "go", "store": True, "conversation": None, "background": False}
    assert responses.prepared(body) == {"input": "go", "store": False, "include": [ENCRYPTED]}
    kept = ["message.output_text.logprobs", ENCRYPTED]
    assert responses.prepared({"input": "go", "include": kept})["include"] == kept


def test_shell_without_an_environment_is_the_agents_own():
    sent = responses.prepared({"input": "go", "tools": [{"type": "shell"}, TOOL]})
    assert sent["tools"] == [{"type": "shell", "environment": {"type": "local"}}, TOOL]
