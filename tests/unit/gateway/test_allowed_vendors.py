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

from dgm.gateway import allowed
from dgm.messages import WireProtocol

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
RULES = {name: allowed.RULES[WireProtocol[name.upper()]] for name in ("chat", "responses", "messages")}


def undecided(names, passed):
    return sorted(
        name for name in names if not {name, allowed.DATED.sub("", name)} & (passed | allowed.REASONS.keys())
    )


@pytest.mark.parametrize(
    ("record", "protocol", "least"),
    [
        *((CHAT, "chat", 30), (RESPONSES, "responses", 30), (MESSAGES, "messages", 18)),
        *((BETA, "messages", 25), (COUNT, "messages", 8), (BETA_COUNT, "messages", 12)),
    ],
)
def test_every_key_of_a_request_is_decided(record, protocol, least):
    known = hints(record).keys()
    assert len(known) >= least
    assert undecided(known, RULES[protocol].keys) == []


@pytest.mark.parametrize(
    ("protocol", "known", "least"),
    [
        ("chat", types_below(CHAT, "tools"), 2),
        ("chat", types_below(CHAT, "messages", "tool_calls"), 2),
        ("responses", types_below(RESPONSES, "tools"), 16),
        ("responses", types_below(RESPONSES, "input", "tools"), 16),
        ("messages", types_below(MESSAGES, "tools"), 22),
        ("messages", types_below(BETA, "tools"), 28),
    ],
)
def test_every_type_of_tool_is_decided(protocol, known, least):
    assert len(known) >= least
    assert undecided(known, RULES[protocol].tools) == []


@pytest.mark.parametrize(
    ("protocol", "known", "least"),
    [
        ("chat", types_below(CHAT, "messages", "content"), 5),
        ("responses", types_below(RESPONSES, "input"), 28),
        ("responses", types_below(RESPONSES, "input", "content"), 4),
        ("messages", types_below(MESSAGES, "messages", "content"), 16),
        ("messages", types_below(BETA, "messages", "content"), 16),
        ("messages", types_below(BETA, "messages", "content", "tool"), 4),
    ],
)
def test_every_type_of_content_is_decided(protocol, known, least):
    assert len(known) >= least
    assert undecided(known, RULES[protocol].content) == []


def test_every_included_thing_is_decided():
    assert undecided(words(ResponseIncludable), allowed.TABLE["include"]["passed"]) == []


def test_every_beta_is_decided():
    betas = words(AnthropicBetaParam)
    assert len(betas) >= 55
    known = allowed.TABLE["betas"]["passed"] | allowed.BETA_REASONS.keys()
    assert {allowed.BETA_DATE.sub("", beta) for beta in betas} - known == set()


def test_service_that_costs_more_is_refused():
    tiers = words(hints(CHAT)["service_tier"]) | words(hints(RESPONSES)["service_tier"])
    assert tiers - set(allowed.TIERS) == {"scale", "priority", "fast", "ultrafast"}
