"""Every key and every type that the vendors' packages know either passes or is refused with a reason."""

import typing

import pytest
import typing_extensions
from anthropic.types import AnthropicBetaParam, message_count_tokens_params, message_create_params
from anthropic.types.beta import message_count_tokens_params as beta_count_tokens_params
from anthropic.types.beta import message_create_params as beta_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from openai.types.responses.response_includable import ResponseIncludable

from dgm.gateway.allowed import (
    chat,
    chat_tools,
    headers,
    messages,
    messages_blocks,
    responses,
    responses_items,
)
from dgm.gateway.allowed.walk import DATED, KeyRules

WRAPPERS = (
    *(typing_extensions.Required, typing_extensions.NotRequired, typing_extensions.Annotated),
    *(typing.Required, typing.NotRequired, typing.Annotated),
)


def unwrapped(hint):
    while typing.get_origin(hint) in WRAPPERS:
        hint = typing.get_args(hint)[0]
    return hint


def records(hint):
    """Every TypedDict that a hint allows, at its top or in its lists."""
    hint = unwrapped(hint)
    if typing_extensions.is_typeddict(hint):
        return [hint]
    origin = typing.get_origin(hint)
    if origin is None or origin in (typing.Literal, dict):
        return []
    return [one for part in typing.get_args(hint) for one in records(part)]


def words(hint):
    hint = unwrapped(hint)
    if typing.get_origin(hint) in (typing.Literal, typing_extensions.Literal):
        return set(typing.get_args(hint))
    return {one for part in typing.get_args(hint) for one in words(part)}


def hints(record):
    return typing_extensions.get_type_hints(record, include_extras=True)


def types_below(record, *path):
    """The values of ``type`` of what stands at a path of keys."""
    found = [record]
    for key in path:
        found = [one for each in found for one in records(hints(each).get(key, str))]
    return {word for one in found for word in words(hints(one).get("type", str))}


CHAT = completion_create_params.CompletionCreateParamsNonStreaming
RESPONSES = response_create_params.ResponseCreateParamsNonStreaming
MESSAGES = message_create_params.MessageCreateParamsNonStreaming
BETA = beta_create_params.MessageCreateParamsNonStreaming
COUNT = message_count_tokens_params.MessageCountTokensParams
BETA_COUNT = beta_count_tokens_params.MessageCountTokensParams
CHAT_PARTS = types_below(CHAT, "messages", "content") | types_below(CHAT, "prediction", "content")
RESPONSE_PARTS = (
    types_below(RESPONSES, "input", "content")
    | types_below(RESPONSES, "input", "output")
    | types_below(RESPONSES, "input", "summary")
)
BLOCKS = KeyRules(
    {
        **messages_blocks.BLOCKS.passed,
        **messages_blocks.USER.passed,
        **messages_blocks.SYSTEM.passed,
    }
)


def decided(kinds, kind):
    names = {kind, DATED.sub("", kind)}
    return bool(names & kinds.passed.keys()) or any(kinds.refused.get(name) for name in names)


@pytest.mark.parametrize(
    ("record", "keys", "least"),
    [
        (CHAT, chat.KEYS, 30),
        (RESPONSES, responses.KEYS, 30),
        (MESSAGES, messages.KEYS, 18),
        (BETA, messages.KEYS, 25),
        (COUNT, messages.COUNT_KEYS, 8),
        (BETA_COUNT, messages.COUNT_KEYS, 12),
    ],
)
def test_every_key_of_a_request_is_decided(record, keys, least):
    known = hints(record).keys()
    assert len(known) >= least
    assert [key for key in known if key not in keys.passed and not keys.refused.get(key)] == []


@pytest.mark.parametrize(
    ("kinds", "known", "least"),
    [
        (chat_tools.TOOLS, types_below(CHAT, "tools"), 2),
        (chat_tools.WISHES, types_below(CHAT, "tool_choice"), 3),
        (chat_tools.CALLS, types_below(CHAT, "messages", "tool_calls"), 2),
        (chat.PARTS, CHAT_PARTS, 5),
        (responses_items.TOOLS, types_below(RESPONSES, "tools"), 16),
        (responses_items.TOOLS, types_below(RESPONSES, "input", "tools"), 16),
        (responses_items.WISHES, types_below(RESPONSES, "tool_choice"), 12),
        (responses_items.ITEMS, types_below(RESPONSES, "input"), 28),
        (responses_items.OWN, types_below(RESPONSES, "tools", "tools"), 2),
        (messages_blocks.TOOLS, types_below(MESSAGES, "tools"), 22),
        (messages_blocks.TOOLS, types_below(BETA, "tools"), 28),
        (messages_blocks.RESULTS, types_below(BETA, "messages", "content", "content"), 5),
        (messages_blocks.CHANGES, types_below(BETA, "messages", "content", "tool_changes"), 2),
        (messages_blocks.CHANGED, types_below(BETA, "messages", "content", "tool"), 4),
        (messages_blocks.WITHIN, types_below(BETA, "messages", "content", "source", "content"), 2),
        (messages.EDITS, types_below(BETA, "context_management", "edits"), 3),
    ],
)
def test_every_type_is_decided(kinds, known, least):
    # Results of a provider's own tools stand within blocks that are refused themselves.
    own = {kind for kind in known if not kind.endswith(("_result", "_error", "_output"))}
    checked = known if kinds in (responses_items.ITEMS, chat.PARTS) else own
    assert len(checked) >= least
    assert sorted(kind for kind in checked if not decided(kinds, kind)) == []


@pytest.mark.parametrize("record", [MESSAGES, BETA])
def test_every_block_is_decided(record):
    known = types_below(record, "messages", "content")
    assert len(known) >= 16
    refused = messages_blocks.REFUSED
    assert sorted(kind for kind in known if kind not in BLOCKS.passed and not refused.get(kind)) == []


def test_every_part_of_an_item_is_decided():
    assert len(RESPONSE_PARTS) >= 7
    assert RESPONSE_PARTS - responses_items.PARTS.passed.keys() == set()


def test_every_included_thing_is_decided():
    assert words(ResponseIncludable) == {*responses.INCLUDED, *responses.NOT_INCLUDED}


def test_every_beta_is_decided():
    betas = words(AnthropicBetaParam)
    assert len(betas) >= 55
    names = {headers.DATE.sub("", beta) for beta in betas}
    assert (
        sorted(name for name in names if name not in headers.PASSED and not headers.REFUSED.get(name)) == []
    )


def test_service_that_costs_more_is_refused():
    tiers = words(hints(CHAT)["service_tier"]) | words(hints(RESPONSES)["service_tier"])
    assert tiers - set(chat.rules.TIERS) == {"scale", "priority", "fast", "ultrafast"}
