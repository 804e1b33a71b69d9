"""Allow-list for chat completion requests that pass unchanged to a provider of the same protocol."""

from collections.abc import Mapping
from typing import Any

from dgm.gateway.allowed import rules, servers
from dgm.gateway.allowed.addresses import check_inline
from dgm.gateway.allowed.chat_tools import (
    CALLS,
    TOOLS,
    check_called,
    check_choice,
    check_function_call,
    check_functions,
)
from dgm.gateway.allowed.walk import (
    STORED,
    KeyRules,
    Rule,
    TypeRules,
    check_bounded,
    check_schema,
    split_words,
    tool_names,
)
from dgm.gateway.leaving_out import describe_media
from dgm.gateway.translation import parsing
from dgm.gateway.translation.openai_chat import MAX_STOPS
from dgm.gateway.translation.wire import BadRequest
from dgm.messages import JsonObject

SPOKEN = frozenset(split_words("role content name cache_control prefix partial weight"))
RESULT = SPOKEN | {"tool_call_id", "tool_name"}
ROLES: Mapping[str, frozenset[str] | None] = {
    "system": SPOKEN,
    "developer": SPOKEN,
    "user": SPOKEN,
    "tool": RESULT,
    "function": SPOKEN,
    # The content comes back as the server wrote it, with the server's own keys.
    "assistant": None,
}
TEXTS = ("text", "refusal")
"""Types of parts that the result of a tool can hold."""
FORMATS = ("text", "json_object", "json_schema", "grammar", "regex", "structural_tag")


def check(body: JsonObject) -> None:
    """Raise ``BadRequest`` unless the request may pass unchanged.

    Raises:
        BadRequest: it is no chat request, or it asks for something that is not offered.
    """
    check_bounded(body)
    KEYS.check(body)
    if body.get("messages") is None:
        raise BadRequest("messages must be a list")
    tools = (
        []
        if body.get("tools") is None
        else rules.check_tools(body["tools"], TOOLS, lambda tool: tool.get("type"))
    )
    functions = [] if body.get("functions") is None else check_functions(body["functions"])
    rules.check_unique_names([next(iter(tool_names([tool])), None) for tool in tools], "tools")
    check_choice(body.get("tool_choice"), tool_names(tools))
    check_function_call(body.get("function_call"), tool_names(functions))


def prepared(body: JsonObject) -> JsonObject:
    """Return the request in the form to send: nothing is stored, and keys that ask for nothing are left out.

    ``store`` is not added when the agent does not name it: compatible servers may not know the key.
    """
    sent = servers.drop_empty_keys(body, KEYS)
    if sent.get("store") is not None:
        sent["store"] = False
    return sent


def _check_messages(value: Any, place: str) -> None:  # noqa: ANN401  (what a stranger's JSON holds)
    rules.check_turns(value, place, _check_message)


def _check_message(message: JsonObject, place: str) -> None:
    role = message.get("role")
    allowed = ROLES[parsing.read_one_of(role, f"{place}.role", ROLES)]
    content = message.get("content")
    if allowed is None:
        _check_assistant(message, place)
        return
    if not message.keys() <= allowed:
        KeyRules(dict.fromkeys(allowed)).check(message, place)
    if content is None:
        raise BadRequest(f"{place}.content is missing")
    if role == "tool":
        parsing.read_name(message.get("tool_call_id"), f"{place}.tool_call_id")
    elif role == "function":
        parsing.read_name(message.get("name"), f"{place}.name")
    if not isinstance(content, str):
        PARTS.each(content, f"{place}.content")
        check_inline(content, f"{place}.content")
        if role == "tool":
            content[:] = [
                part if part["type"] in TEXTS else {"type": "text", "text": describe_media(part)}
                for part in content
            ]


def _check_assistant(message: JsonObject, place: str) -> None:
    content = message.get("content")
    if content is not None:
        PARTS.content(content, f"{place}.content")
    if message.get("refusal") is not None:
        PARTS.content(message["refusal"], f"{place}.refusal")
    if message.get("audio") is not None:
        raise BadRequest(f"{place}.audio is not offered here: {STORED}", "unsupported_parameter")
    if message.get("tool_calls") is not None:
        calls = parsing.read_entries(message["tool_calls"], f"{place}.tool_calls", parsing.MAX_TOOLS)
        for at, call in enumerate(calls):
            here = f"{place}.tool_calls[{at}]"
            CALLS.check(parsing.read_record(call, here).get("type") or "function", call, here)
    if message.get("function_call") is not None:
        check_called(message["function_call"], f"{place}.function_call")
    check_inline(message, place)


def _media_rule(key: str) -> Rule:
    """Return the rule of a part whose media stand, as a data: URL, in ``key`` or in the ``url`` within it."""

    def rule(part: JsonObject, place: str) -> None:
        held = part.get(key)
        parsing.read_name(held.get("url") if isinstance(held, dict) else held, f"{place}.{key}")

    return rule


def _check_file(part: JsonObject, place: str) -> None:
    held = parsing.read_record(part.get("file"), f"{place}.file")
    if held.get("file_id") is not None:
        raise BadRequest(f"{place}.file.file_id is not offered here: {STORED}", "unsupported_content")
    if not isinstance(held.get("file_data"), str):
        raise BadRequest(
            f"{place}: a part of the type 'file' must hold its data inline, in file.file_data",
            "unsupported_content",
        )


PARTS = TypeRules(
    "content",
    "unsupported_content",
    {
        "text": rules.text_rule("text"),
        "refusal": rules.text_rule("refusal"),
        "image_url": _media_rule("image_url"),
        "video_url": _media_rule("video_url"),
        "audio_url": _media_rule("audio_url"),
        "input_audio": rules.check_sound,
        "file": _check_file,
        "thinking": None,
        "redacted_thinking": None,
    },
    dict.fromkeys(("document_url", "file_url", "file_id", "video", "container_upload"), STORED),
)


def _check_response_format(value: Any, place: str) -> None:  # noqa: ANN401
    given = parsing.read_record(value, place)
    parsing.read_one_of(given.get("type"), f"{place}.type", FORMATS)
    if given.get("json_schema") is not None:
        check_schema(given["json_schema"], f"{place}.json_schema")


def _check_prediction(value: Any, place: str) -> None:  # noqa: ANN401
    given = parsing.read_record(value, place)
    rules.exact_value_rule("content", why="nothing else is predicted")(given.get("type"), f"{place}.type")
    PARTS.content(given.get("content"), f"{place}.content")
    check_inline(given, place)


KEYS = KeyRules(
    {
        **servers.PASSED,
        "messages": _check_messages,
        "model": parsing.read_text,
        "stream": parsing.read_flag,
        "stream_options": parsing.read_record,
        "max_tokens": parsing.read_whole,
        "max_completion_tokens": parsing.read_whole,
        "n": rules.check_choices,
        "temperature": rules.number_rule(2),
        "top_p": rules.number_rule(1),
        "stop": rules.stops_rule(MAX_STOPS),
        "reasoning_effort": rules.check_effort,
        "response_format": _check_response_format,
        "prediction": _check_prediction,
        "modalities": rules.exact_value_rule(["text"], why="answers are text"),
        "service_tier": rules.check_tier,
        "prompt_cache_options": rules.record_rule(rules.CACHE),
        **dict.fromkeys(
            split_words(  # Checked together, once the names of the tools are known.
                "tools tool_choice functions function_call parallel_tool_calls verbosity store user metadata"
                " safety_identifier prompt_cache_key prompt_cache_retention"
            )
        ),
    },
    {**servers.REFUSED, "previous_response_id": "send the whole conversation", "thread": STORED},
)
