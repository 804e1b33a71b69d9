"""Requests of Anthropic's messages protocol as ``dgm.messages``; ``messages_answer`` translates the answers.

Thinking that comes back is ignored, because the gateway remembers it as the vendor wrote it. The effort is one word:

- ``output_config.effort`` if it is given
- ``high`` for adaptive thinking, because that is its default
- for enabled thinking, by budget: below 4,000 tokens ``low``, below 16,000 ``medium``, else ``high``
- ``none`` for disabled thinking
- the model's default if nothing is given
"""

import json
from typing import Any

from dgm.gateway.leaving_out import leave_out
from dgm.gateway.translation import parsing
from dgm.gateway.translation.messages_answer import (
    NO_THREADS,
    UNREADABLE,
    models,
    one_model,
    render_error,
    write_answer,
)
from dgm.gateway.translation.parsing import make_keys
from dgm.gateway.translation.wire import BadRequest, ParsedCall, Wire
from dgm.messages import JsonObject, Message, Request, Role, Tool, ToolCall, WireProtocol

BUDGETS = ((4_000, "low"), (16_000, "medium"))
MIN_BUDGET = 1024
"""Minimum thinking budget of the protocol, in tokens."""
MAX_STOPS = 100
BLOCK_GAP = "\n\n"
"""Separator between the texts of several blocks, which would else run together; not used in an assistant's turns."""

BOOKKEEPING = (
    # Caller identity and billing; none of it reaches the model.
    *("metadata", "service_tier", "user_profile_id"),
    # The adapter controls caching; it changes only the cost.
    *("cache_control", "diagnostics"),
)
KEEP_THINKING = {"type": "clear_thinking_20251015", "keep": "all"}
"""The edit that the gateway always makes: it puts the thinking of every turn back."""
PROVIDER_SIDE = "no tools of a provider, and no remote servers"
REQUEST = make_keys(
    "messages system model max_tokens tools tool_choice stop_sequences temperature top_p thinking output_config stream",
    BOOKKEEPING,
    {
        "speed": ("standard",),
        "context_management": ({}, {"edits": []}, {"edits": [KEEP_THINKING]}),
        "betas": ([],),
        "mcp_servers": ([],),
    },
    {
        "mcp_servers": PROVIDER_SIDE,
        "container": PROVIDER_SIDE,
        "inference_geo": "where a model runs is not the agent's choice",
        "output_format": "answers are free text",
        "compaction": "the conversation is the agent's to shorten",
        "fallbacks": "the model is the one that was lent",
    },
    ["context_management"],
)
OUTPUT = make_keys("effort", (), None, {"format": "answers are free text"})
THINKING = make_keys("type budget_tokens display")
TURN = make_keys("role content")
TEXT = make_keys("type text", ["cache_control"], {"citations": ([],)})
USE = make_keys("type id name input", ["cache_control"], {"caller": ({"type": "direct"},)})
RESULT = make_keys("type tool_use_id content is_error", ["cache_control"])
TOOL = make_keys(
    "type name description input_schema",
    # The schema is sent either way, whether a provider enforces it or the model follows it. Streaming an input in finer
    # steps does not change it.
    ["cache_control", "strict", "eager_input_streaming"],
    {"defer_loading": (False,), "allowed_callers": (["direct"],), "input_examples": ([],)},
    None,
    ["defer_loading", "input_examples"],
)
CHANGES = ("tool_addition", "tool_removal")
"""Blocks by which a system turn changes the tools; a tool that it names is offered from the start."""
CHOICES = {"auto": "auto", "any": "required", "none": "none", "tool": "tool"}
CHOICE = make_keys("type name disable_parallel_tool_use")


def parse(given: JsonObject) -> ParsedCall:
    """Parse a request's body.

    Raises:
        BadRequest: it is no request for a message, or it asks for something that is not offered.
    """
    if given.get("thread") is not None:
        # The vendor's tool runner sends this unasked; when refused with this code, it goes on without it.
        raise BadRequest("thread is not offered here: send the whole conversation", NO_THREADS)
    parsing.check_keys(given, REQUEST)
    most = parsing.read_whole(given.get("max_tokens"), "max_tokens")
    if most is None:
        raise BadRequest("max_tokens is missing")
    tools = parsing.read_tools(given.get("tools"), _parse_tool)
    word, parallel = _parse_tool_choice(given.get("tool_choice"))
    effort, display = _parse_thinking(given, most)
    request = Request(
        messages=_parse_messages(given),
        tools=tools,
        model=parsing.read_text(given.get("model", "default"), "model"),
        temperature=parsing.read_number(given.get("temperature"), "temperature", 1),
        max_output_tokens=most,
        top_p=parsing.read_number(given.get("top_p"), "top_p", 1),
        stop=parsing.read_stops(given.get("stop_sequences"), "stop_sequences", MAX_STOPS),
        tool_choice=parsing.read_choice(word, tools),
        parallel=parallel,
        effort=effort,
    )
    stream = parsing.read_flag(given.get("stream"), "stream")
    return ParsedCall(request, stream, stream_usage=True, echo={"thinking": display})


WIRE = Wire(
    WireProtocol.MESSAGES,
    "/messages",
    parse,
    write_answer,
    render_error,
    models,
    one_model,
    "msg_",
)


def _parse_thinking(given: JsonObject, most: int) -> tuple[str, str]:
    """Return the effort and the display of thinking: ``summarized``, ``omitted``, or empty for none."""
    output = parsing.read_record(
        {} if given.get("output_config") is None else given["output_config"], "output_config"
    )
    parsing.check_keys(output, OUTPUT, "output_config")
    effort = parsing.read_effort(output.get("effort"), "output_config.effort")
    if given.get("thinking") is None:
        return effort, ""
    wish = parsing.read_record(given["thinking"], "thinking")
    parsing.check_keys(wish, THINKING, "thinking")
    kind = parsing.read_one_of(wish.get("type"), "thinking.type", ("adaptive", "enabled", "disabled"))
    if kind != "enabled" and wish.get("budget_tokens") is not None:
        raise BadRequest("thinking.budget_tokens is only for thinking of the type 'enabled'")
    if kind == "disabled":
        return "none", ""
    shown = "summarized" if wish.get("display") is None else wish["display"]
    display = parsing.read_one_of(shown, "thinking.display", ("summarized", "omitted"))
    if kind == "adaptive":
        return effort or "high", display
    budget = parsing.read_whole(wish.get("budget_tokens"), "thinking.budget_tokens")
    if budget is None or not MIN_BUDGET <= budget < most:
        raise BadRequest(f"thinking.budget_tokens must be from {MIN_BUDGET} to below max_tokens")
    return effort or next((word for bound, word in BUDGETS if budget < bound), "high"), display


def _parse_messages(given: JsonObject) -> tuple[Message, ...]:
    turns = parsing.read_entries(given.get("messages"), "messages", parsing.MAX_MESSAGES)
    if not turns:
        raise BadRequest("messages must not be empty")
    found: list[Message] = []
    if given.get("system") is not None:
        found.append(
            Message(Role.SYSTEM, parsing.read_parts(given["system"], "system", _parse_text, BLOCK_GAP))
        )
    for at, turn in enumerate(turns):
        found += _parse_turn(parsing.read_record(turn, f"messages[{at}]"), f"messages[{at}]")
    if found[-1].role is Role.ASSISTANT:
        raise BadRequest("the last message is the assistant's: to go on within it is not offered here")
    return tuple(found)


def _parse_turn(turn: JsonObject, place: str) -> list[Message]:
    parsing.check_keys(turn, TURN, place)
    place_of_content = f"{place}.content"
    content = turn.get("content")
    match parsing.read_one_of(turn.get("role"), f"{place}.role", ("user", "assistant", "system")):
        case "assistant":
            return [_parse_assistant(content, place_of_content)]
        case "system":
            content = _without_changes(content)
            told = parsing.read_parts(content, place_of_content, _parse_text, BLOCK_GAP)
            return [Message(Role.SYSTEM, told)] if told else []
        case _:
            return _parse_user(content, place_of_content)


def _without_changes(content: Any) -> Any:  # noqa: ANN401  (what a stranger's JSON holds)
    """Return the content of a system turn without what names tools to add or remove."""
    if not isinstance(content, list):
        return [] if content is None else content
    kept = [block for block in content if not _is_change(block)]
    if len(kept) < len(content):
        leave_out("changes of tools within the conversation")
    return kept


def _is_change(block: Any) -> bool:  # noqa: ANN401
    tool = block.get("tool") if isinstance(block, dict) and block.get("type") in CHANGES else None
    return isinstance(tool, dict) and tool.get("type") == "tool_reference"


def _parse_blocks(content: Any, place: str) -> list[tuple[JsonObject, str]]:  # noqa: ANN401  (what a stranger's JSON holds)
    given = parsing.read_entries(content, place, parsing.MAX_MESSAGES)
    return [
        (parsing.read_record(block, f"{place}[{at}]"), f"{place}[{at}]") for at, block in enumerate(given)
    ]


def _parse_user(content: Any, place: str) -> list[Message]:  # noqa: ANN401
    """Return the tool results, each as its own message, followed by the user's text."""
    if isinstance(content, str):
        return [Message(Role.USER, content)]
    found: list[Message] = []
    texts: list[str] = []
    for block, at in _parse_blocks(content, place):
        if block.get("type") != "tool_result":
            texts.append(_parse_text(block, at))
        elif texts:
            raise BadRequest(f"{at}: results of tools must come before text")
        else:
            found.append(_parse_tool_result(block, at))
    if texts or not found:
        found.append(Message(Role.USER, BLOCK_GAP.join(texts)))
    return found


def _parse_assistant(content: Any, place: str) -> Message:  # noqa: ANN401
    if isinstance(content, str):
        return Message(Role.ASSISTANT, content)
    texts: list[str] = []
    calls: list[ToolCall] = []
    for block, at in _parse_blocks(content, place):
        match block.get("type"):
            case "thinking" | "redacted_thinking":
                pass
            case "tool_use":
                calls.append(_parse_tool_use(block, at))
            case _:
                texts.append(_parse_text(block, at))
    return Message(Role.ASSISTANT, "".join(texts), tuple(calls))


def _parse_text(block: JsonObject, place: str) -> str:
    kind = block.get("type")
    if kind != "text":
        raise parsing.refuse_media(kind, place)
    parsing.check_keys(block, TEXT, place)
    return parsing.read_text(block.get("text"), f"{place}.text")


def _parse_tool_use(block: JsonObject, place: str) -> ToolCall:
    parsing.check_keys(block, USE, place)
    given = parsing.read_schema(block.get("input"), f"{place}.input")
    raw = given.get(UNREADABLE)
    return ToolCall(
        parsing.read_name(block.get("id"), f"{place}.id"),
        parsing.read_name(block.get("name"), f"{place}.name"),
        raw if len(given) == 1 and isinstance(raw, str) else json.dumps(given, ensure_ascii=False),
    )


def _parse_tool_result(block: JsonObject, place: str) -> Message:
    parsing.check_keys(block, RESULT, place)
    content = block.get("content")
    read = parsing.result_reader(("text", "tool_reference"), _parse_found)
    told = "" if content is None else parsing.read_parts(content, f"{place}.content", read, BLOCK_GAP)
    call_id = parsing.read_name(block.get("tool_use_id"), f"{place}.tool_use_id")
    return Message(
        Role.TOOL, told, (), call_id, parsing.read_flag(block.get("is_error"), f"{place}.is_error")
    )


def _parse_found(block: JsonObject, place: str) -> str:
    """Return the text of a result's block; one that names a tool, which the agent's own search found, is a text."""
    if block.get("type") == "tool_reference":
        return f"[tool: {parsing.read_name(block.get('tool_name'), f'{place}.tool_name')}]"
    return _parse_text(block, place)


def _parse_tool(given: JsonObject, place: str) -> Tool:
    kind = given.get("type")
    if kind not in (None, "custom"):
        raise BadRequest(
            f"{place}: {str(kind)[:40]!r} is a tool of the provider; only tools with an input_schema are offered here",
            "unsupported_tool",
        )
    parsing.check_keys(given, TOOL, place)
    description = given.get("description")
    return Tool(
        parsing.read_name(given.get("name"), f"{place}.name"),
        "" if description is None else parsing.read_text(description, f"{place}.description"),
        parsing.read_schema(given.get("input_schema"), f"{place}.input_schema"),
    )


def _parse_tool_choice(value: Any) -> tuple[str, bool]:  # noqa: ANN401
    """Return the tool choice, and whether several calls may come at once."""
    if value is None:
        return "auto", True
    given = parsing.read_record(value, "tool_choice")
    parsing.check_keys(given, CHOICE, "tool_choice")
    word = CHOICES[parsing.read_one_of(given.get("type"), "tool_choice.type", CHOICES)]
    if word == "tool":
        word = "tool:" + parsing.read_name(given.get("name"), "tool_choice.name")
    single = parsing.read_flag(
        given.get("disable_parallel_tool_use"), "tool_choice.disable_parallel_tool_use"
    )
    return word, not single
