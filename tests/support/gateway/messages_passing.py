"""Requests for messages that are to pass: those of real programs, and each kind by itself."""

from tests.support.gateway.wire_bench import SCHEMA

USER = {"role": "user", "content": "go"}
TOOL = {"name": "bash", "description": "Run it.", "input_schema": SCHEMA}
CACHED = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
PNG = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
WEB_PNG = {"type": "image", "source": {"type": "url", "url": "http://example.org/a.png"}}
BUDGET = {"type": "enabled", "budget_tokens": 2000}


def said(*blocks, role="user"):
    return {"messages": [{"role": role, "content": list(blocks)}, USER]}


def text(told, **more):
    return {"type": "text", "text": told, **more}


def use(**more):
    return {"type": "tool_use", "id": "c", "name": "bash", "input": {"command": "ls"}, **more}


def result(*blocks, **more):
    return {"type": "tool_result", "tool_use_id": "c", "content": list(blocks), **more}


def tools(*given):
    return {"tools": list(given)}


def edits(*given):
    return {"context_management": {"edits": list(given)}}


PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}}
PASSING = {
    # Programs as they ask.
    "Claude Code": {
        "model": "default",
        "max_tokens": 32_000,
        "stream": True,
        "system": [text("You are a coding agent.", **CACHED), text("Context.", **CACHED)],
        "messages": [
            {"role": "user", "content": [text("<system-reminder>x</system-reminder>"), text("go", **CACHED)]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                    {"type": "redacted_thinking", "data": "x"},
                    text("Let me look."),
                    use(**CACHED),
                ],
            },
            {"role": "user", "content": [result(text("a.py"), is_error=False, **CACHED)]},
        ],
        "tools": [{**TOOL, **CACHED, "eager_input_streaming": True}],
        "thinking": BUDGET,
        "metadata": {"user_id": "u"},
        "temperature": 1,
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
    },
    "a tool loop with cache marks": {
        "system": [text("s", cache_control={"type": "ephemeral"})],
        "tools": [{**TOOL, "strict": True, "cache_control": {"type": "ephemeral"}}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "cache_control": {"type": "ephemeral"},
    },
    "LangChain, structured output": {
        **tools({**TOOL, "type": "custom"}),
        "tool_choice": {"type": "tool", "name": "bash"},
    },
    "LangChain, structured output by a schema": {
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}
    },
    "litellm": {
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": [text("go")]}],
        "temperature": 0.0,
    },
    "vendor's loop over a computer": {
        **tools(
            {
                "type": "computer_20251124",
                "name": "computer",
                "display_width_px": 1024,
                "display_height_px": 768,
            },
            {"type": "bash_20250124", "name": "bash"},
            {"type": "text_editor_20250728", "name": "str_replace_based_edit_tool", "max_characters": 10_000},
        ),
        "messages": [
            USER,
            {"role": "assistant", "content": [use(name="computer", input={"action": "screenshot"})]},
            {"role": "user", "content": [result(PNG)]},
        ],
    },
    # What shapes an answer.
    "top_k (refused until passing through)": {"top_k": 5},
    "form of the answer (refused until passing through)": {
        "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}
    },
    "form of the answer, the older key": {"output_format": {"type": "json_schema", "schema": SCHEMA}},
    "effort": {"output_config": {"effort": "max", "task_budget": {"type": "tokens", "total": 20_000}}},
    "thinking between tools (refused until passing through)": {"thinking": {"type": "between_tools"}},
    "adaptive thinking": {"thinking": {"type": "adaptive", "display": "omitted"}},
    "no thinking": {"thinking": {"type": "disabled"}},
    "thinking with a rule for old thoughts": {
        "thinking": {**BUDGET, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    },
    "more thinking than one answer, between tools": {
        **tools(TOOL),
        "thinking": {"type": "enabled", "budget_tokens": 20_000},
    },
    "prefilled answer (refused until passing through)": {
        "messages": [USER, {"role": "assistant", "content": "It is ("}]
    },
    "stops": {"stop_sequences": ["END"], "top_p": 0.5},
    "service without priority": {"service_tier": "standard_only", "speed": "standard"},
    "nothing of what is not offered": {
        "mcp_servers": [],
        "betas": [],
        "thinking": None,
        "container": None,
        "context_management": {},
        "diagnostics": {"previous_message_id": None},
    },
    "clearing of old results (refused until passing through)": edits(
        {
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "input_tokens", "value": 50_000},
            "keep": {"type": "tool_uses", "value": 3},
            "exclude_tools": ["memory"],
        }
    ),
    "vLLM's messages": {"chat_template_kwargs": {"enable_thinking": False}},
    # Tools that the client executes.
    "built-in shell (refused until passing through)": tools({"type": "bash_20250124", "name": "bash"}),
    "older shell": tools({"type": "bash_20241022", "name": "bash"}),
    "editor": tools({"type": "text_editor_20250429", "name": "str_replace_based_edit_tool"}),
    "memory": tools({"type": "memory_20250818", "name": "memory", "input_examples": [{"command": "view"}]}),
    "computer toolset": {
        **tools({"type": "computer_toolset_20260801", "configs": {"zoom": {"enabled": False}}}),
        "tool_choice": {"type": "tool", "name": "screenshot"},
    },
    "browser toolset": tools({"type": "browser_toolset_20260801"}),
    "choice of a built-in tool": {
        **tools({"type": "bash_20250124", "name": "bash"}),
        "tool_choice": {"type": "tool", "name": "bash"},
    },
    "direct calls": tools({**TOOL, "allowed_callers": ["direct"], "defer_loading": False}),
    # The history.
    "citations (refused until passing through)": said(
        text("a", citations=[{"type": "char_location", "cited_text": "x", "document_index": 0}])
    ),
    "citation of a page of the web": said(
        text("a", citations=[{"type": "web_search_result_location", "url": "https://a.example"}]),
        role="assistant",
    ),
    "search result (refused until passing through)": said(
        {
            "type": "search_result",
            "source": "https://a.example/page",
            "title": "t",
            "content": [text("x")],
            "citations": {"enabled": True},
        }
    ),
    "search result as a result": said(
        result({"type": "search_result", "source": "kb://1", "title": "t", "content": [text("x")]})
    ),
    "result that the browser was in": said(
        result(
            {"type": "browser_state", "tabs": [{"tab_id": "1", "title": "t", "url": "https://a.example"}]},
            toolset_name="browser",
        )
    ),
    "call that was direct": said(use(caller={"type": "direct"}), role="assistant"),
    "input that names an address": said(
        use(input={"url": "https://a.example", "file_id": "f"}), role="assistant"
    ),
    "result without content": said({"type": "tool_result", "tool_use_id": "c"}),
    "results before text": said(result(text("a")), text("Go on.")),
    "system within": {"messages": [USER, {"role": "system", "content": "Stay brief.", "clear_at": "never"}]},
    "effort within": {"messages": [USER, {"role": "system", "output_config": {"effort": "low"}}]},
    "a tool that is taken away": {
        "messages": [
            USER,
            {
                "role": "system",
                "content": [{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "bash"}}],
            },
        ]
    },
    "a tool that is added": {
        "messages": [
            USER,
            {
                "role": "system",
                "content": [
                    {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": TOOL}}
                ],
            },
        ]
    },
    "compaction that the agent holds": said(
        {"type": "compaction", "content": "Summary.", "signature": "s", "tool_changes": []}, role="assistant"
    ),
    # Media inline.
    "image": said(PNG),
    "document": said({**PDF, "title": "a", "citations": {"enabled": True}, **CACHED}),
    "document of plain text": said(
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "http: what it is"},
        }
    ),
    "document of blocks": said(
        {"type": "document", "source": {"type": "content", "content": [text("a"), PNG]}, "context": "c"}
    ),
    "image and document as a result": said(result(PNG, PDF, text("a"))),
}
