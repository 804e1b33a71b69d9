"""Requests for responses that are to pass: those of real programs, and each kind by itself."""

from tests.support.gateway.chat_passing import PIXEL
from tests.support.gateway.wire_bench import SCHEMA

TOOL = {"type": "function", "name": "bash", "description": "Run it.", "parameters": SCHEMA, "strict": True}
CALL = {"type": "function_call", "call_id": "call_1", "name": "bash", "arguments": "{}"}
ENCRYPTED = "reasoning.encrypted_content"
DIRECT = {"caller": {"type": "direct"}}


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
