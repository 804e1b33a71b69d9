"""Requests for chat completions that are to pass: those of real programs, and each kind by itself."""

from tests.support.gateway.wire_bench import SCHEMA

USER = {"role": "user", "content": "go"}
TOOL = {"type": "function", "function": {"name": "bash", "description": "Run it.", "parameters": SCHEMA}}
CALL = {"id": "call_1", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "a.py"}
CACHED = {"type": "ephemeral"}
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def said(*parts, role="user"):
    return {"messages": [{"role": role, "content": list(parts)}]}


def turn(**keys):
    return {"messages": [USER, {"role": "assistant", "content": "", **keys}]}


def schema(**keys):
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA, **keys}}


def nested(depth):
    value = {"a": 1}
    for _ in range(depth):
        value = {"a": value}
    return value


PASSING = {
    # Programs as they ask.
    "mini-swe-agent by litellm": {
        "model": "default",
        "messages": [
            {"role": "system", "content": "You solve tasks with bash."},
            USER,
            {
                "role": "assistant",
                "content": "```bash\nls\n```",
                "provider_specific_fields": {"refusal": None},
            },
            {"role": "user", "content": "<returncode>0</returncode>"},
        ],
        "temperature": 0.0,
        "drop": None,
    },
    "mini-swe-agent with a tool and cache marks": {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "s", "cache_control": CACHED}]},
            {"role": "user", "content": [{"type": "text", "text": "u", "cache_control": CACHED}]},
            CALLED,
            {**RESULT, "cache_control": CACHED},
        ],
        "tools": [TOOL],
        "parallel_tool_calls": True,
        "extra_headers": None,
    },
    "openai-agents by chat": {
        "messages": [{"role": "developer", "content": "Be brief."}, USER],
        "tools": [{"type": "function", "function": {**TOOL["function"], "strict": True}}],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "response_format": schema(strict=True),
        "store": None,
        "reasoning_effort": "low",
        "verbosity": "low",
        "top_logprobs": 3,
        "logprobs": True,
        "metadata": {"trace": "7"},
        "prompt_cache_retention": "24h",
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    "LangChain, structured output by a schema": {
        "response_format": schema(strict=True, description="An answer."),
        "stream": False,
        "n": 1,
    },
    "LangChain, structured output by a function": {
        "tools": [TOOL],
        "tool_choice": {"type": "function", "function": {"name": "bash"}},
        "parallel_tool_calls": False,
    },
    "LangChain, structured output by JSON mode": {"response_format": {"type": "json_object"}},
    "aider": {
        "messages": [
            {"role": "system", "content": "Act as an expert."},
            USER,
            {"role": "assistant", "content": "Ok."},
            USER,
        ],
        "temperature": 0,
        "stream": True,
        "max_tokens": 8192,
    },
    "aider, going on within an answer": {
        "messages": [USER, {"role": "assistant", "content": "def f(", "prefix": True}],
        "stop": ["```"],
    },
    "OpenHands": {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "s", "cache_control": CACHED}]},
            {"role": "user", "content": [{"type": "text", "text": "u"}]},
            {**CALLED, "content": [{"type": "text", "text": "I look."}]},
            {
                "role": "tool",
                "tool_call_id": "call_1",
                "name": "bash",
                "content": [{"type": "text", "text": "t"}],
            },
        ],
        "tools": [TOOL],
        "tool_choice": "auto",
        "metadata": {"session_id": "s", "tags": ["model:m"]},
        "seed": 1,
        "top_p": 1.0,
        "top_k": 20,
        "max_completion_tokens": 4096,
    },
    "smolagents": {"stop": ["Observation:", "<end_code>"], "response_format": schema()},
    # What shapes an answer.
    "json answers (refused until passing through)": {"response_format": {"type": "json_object"}},
    "logprobs (refused until passing through)": {"logprobs": True},
    "penalty (refused until passing through)": {"frequency_penalty": 0.5, "presence_penalty": -1},
    "several answers (refused until passing through)": {"n": 2},
    "sixteen answers": {"n": 16},
    "top_k (refused until passing through)": {"top_k": 4},
    "bias": {"logit_bias": {"50256": -100}},
    "verbosity": {"verbosity": "high"},
    "prediction": {"prediction": {"type": "content", "content": "def f():"}},
    "prediction in parts": {"prediction": {"type": "content", "content": [{"type": "text", "text": "x"}]}},
    "flexible service": {"service_tier": "flex"},
    "service of the account": {"service_tier": "auto"},
    "text only": {"modalities": ["text"]},
    "caching": {"prompt_cache_key": "p", "prompt_cache_options": {"mode": "explicit", "ttl": "30m"}},
    "bookkeeping": {"user": "u", "safety_identifier": "s", "metadata": {"url": "https://example.org"}},
    "stored or not": {"store": True},
    "null asks for nothing": dict.fromkeys(
        ("tools", "stop", "functions", "audio", "whatever", "n", "models")
    ),
    "false asks for nothing": {"enable_search": False, "background": False, "plugins": []},
    # Tools.
    "functions (refused until passing through)": {"functions": [{"name": "f", "parameters": SCHEMA}]},
    "function_call (refused until passing through)": {"function_call": "auto", "functions": [{"name": "f"}]},
    "function by name": {"function_call": {"name": "f"}, "functions": [{"name": "f"}]},
    "custom tool (refused until passing through)": {"tools": [{"type": "custom", "custom": {"name": "c"}}]},
    "custom tool with a grammar": {
        "tools": [
            {
                "type": "custom",
                "custom": {
                    "name": "c",
                    "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": "start: /x/"}},
                },
            }
        ],
        "tool_choice": {"type": "custom", "custom": {"name": "c"}},
    },
    "choice among some (refused until passing through)": {
        "tools": [TOOL],
        "tool_choice": {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "bash"}}],
            },
        },
    },
    "schema with properties that look like addresses": {
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "fetch",
                    "parameters": {
                        "type": "object",
                        "properties": {"url": {"type": "string", "default": "https://example.org"}},
                    },
                },
            }
        ]
    },
    "deep schema within the bound": {
        "tools": [{"type": "function", "function": {"name": "f", "parameters": nested(30)}}]
    },
    "schema that refers to itself": {
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "parameters": {
                        "$ref": "#/$defs/a",
                        "$defs": {"a": {"properties": {"$ref": {"type": "string"}}}},
                    },
                },
            }
        ]
    },
    # The history.
    "name of a speaker (refused until passing through)": {"messages": [{**USER, "name": "Ada"}]},
    "legacy call (refused until passing through)": {
        "messages": [
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "x"},
        ]
    },
    "custom call": {
        "messages": [
            {
                "role": "assistant",
                "tool_calls": [{"id": "1", "type": "custom", "custom": {"name": "c", "input": "x"}}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "x"},
        ]
    },
    "prefilled answer": {"messages": [USER, {"role": "assistant", "content": "It is ("}]},
    "turn as the server wrote it": turn(
        reasoning_content="x",
        reasoning="x",
        reasoning_details=[
            {"type": "reasoning.encrypted", "data": "gAAAA", "format": "v1", "id": "r", "index": 0}
        ],
        thinking_blocks=[{"type": "thinking", "thinking": "x", "signature": "s"}],
        annotations=[
            {
                "type": "url_citation",
                "url_citation": {"url": "https://example.org", "title": "t", "start_index": 0},
            }
        ],
        refusal=None,
        audio=None,
        function_call=None,
        parsed={"a": 1},
        matched_stop=7,
    ),
    "call whose type is null": turn(tool_calls=[{**CALL, "type": None}]),
    "signature of a thought beside a call": turn(
        tool_calls=[{**CALL, "index": 0, "extra_content": {"google": {"thought_signature": "CtQB"}}}]
    ),
    "refusal that comes back": {"messages": [{"role": "assistant", "content": None, "refusal": "No."}, USER]},
    # Media inline.
    "image inline": said({"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}}),
    "image inline, the short form": said({"type": "image_url", "image_url": PIXEL}),
    "image as a result": {
        "messages": [CALLED, {**RESULT, "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}]
    },
    "sound inline": said({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}}),
    "document inline": said(
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBE", "filename": "a.pdf"}}
    ),
    "film inline": said({"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}}),
    # Compatible servers.
    "vLLM": {
        "repetition_penalty": 1.1,
        "min_p": 0.05,
        "guided_json": SCHEMA,
        "chat_template_kwargs": {"enable_thinking": False},
        "stop_token_ids": [2],
        "structured_outputs": {"choice": ["a", "b"]},
        "skip_special_tokens": False,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    },
    "llama.cpp": {
        "cache_prompt": True,
        "typical_p": 1.0,
        "dry_multiplier": 0.8,
        "grammar": "root ::= [a-z]+",
        "mirostat": 2,
        "samplers": ["top_k", "min_p"],
    },
    "Ollama": {"options": {"num_ctx": 8192, "repeat_penalty": 1.1}, "think": True, "format": "json"},
    "SGLang": {"separate_reasoning": True, "regex": "[a-z]+", "ignore_eos": False},
    "OpenRouter": {
        "reasoning": {"effort": "high", "exclude": False},
        "include_reasoning": True,
        "usage": {"include": True},
        "transforms": ["middle-out"],
        "top_a": 0.1,
    },
    "DeepSeek": {
        "thinking": {"type": "enabled"},
        "messages": [USER, {**turn()["messages"][1], "prefix": True}],
    },
    "Qwen": {"enable_thinking": True, "thinking_budget": 4000, "incremental_output": True},
    "Groq": {"reasoning_format": "parsed", "service_tier": "on_demand", "reasoning_effort": "default"},
    "Mistral": {"random_seed": 3, "safe_prompt": False, "prompt_mode": "reasoning", "tool_choice": "none"},
    "Mistral's thinking": {
        "messages": [
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "x"}]}],
            },
            USER,
        ]
    },
    "Moonshot": {"messages": [USER, {"role": "assistant", "content": "{", "partial": True, "name": "k"}]},
}
