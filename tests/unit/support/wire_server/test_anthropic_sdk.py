"""The official ``anthropic`` package understands everything that the server says."""

import json

import anthropic
import pytest

from dgm.messages import Role
from tests.support import wire_conversations as talk
from tests.support.wire_server import Scripted, Thinking, WireServer

pytestmark = pytest.mark.slow

USER = {"role": "user", "content": "look"}


@pytest.fixture
def server():
    with WireServer(brain=talk.tool_script()) as opened:
        yield opened


@pytest.fixture(params=[False, True], ids=["readable", "redacted"])
def thinking(request):
    with WireServer(brain=Thinking(talk.tool_script(), redacted=request.param)) as opened:
        yield opened


def _asked(client, messages, **more):
    return client.messages.create(
        model=talk.CLAUDE,
        max_tokens=2000,
        messages=messages,
        tools=[talk.CLAUDE_TOOL],
        system="be brief",
        **more,
    )


def _results():
    return {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": c.id, "content": "ok", "is_error": True}
            for c in talk.CALLS
        ],
    }


def test_a_message_calls_tools_and_takes_results_and_thinking_back(thinking):
    with talk.anthropic_client(thinking) as client:
        first = _asked(client, [USER])
        assert first.content[0].type in ("thinking", "redacted_thinking")
        assert [b.type for b in first.content[1:]] == ["text", "tool_use", "tool_use"]
        assert first.content[2].input == json.loads(talk.ARGUMENTS)
        assert first.stop_reason == "tool_use"
        assert first.usage.output_tokens_details.thinking_tokens > 0
        back = {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in first.content]}
        last = _asked(client, [USER, back, _results()])
    assert (last.content[-1].text, last.stop_reason) == ("Done.", "end_turn")


def test_adjacent_turns_that_were_merged_are_told_apart(server):
    with talk.anthropic_client(server) as client:
        first = _asked(client, [USER])
        back = {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in first.content]}
        results = _results()
        results["content"].append({"type": "text", "text": "hurry"})
        _asked(client, [USER, back, results])
    heard = server.app.config.brain.asked[1].messages
    roles = [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL, Role.USER]
    assert [m.role for m in heard] == roles
    assert heard[2].calls == talk.CALLS
    assert heard[3].failed


def test_a_stream_is_the_same_message(thinking):
    with talk.anthropic_client(thinking) as client:
        asked = {"model": talk.CLAUDE, "max_tokens": 2000, "messages": [USER], "tools": [talk.CLAUDE_TOOL]}
        with client.messages.stream(**asked) as stream:
            kinds = {event.type for event in stream}
            told = stream.get_final_message()
    assert {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "message_delta",
        "message_stop",
    } <= kinds
    whole = {c.id: json.loads(c.arguments) for c in talk.CALLS}
    assert {b.id: b.input for b in told.content if b.type == "tool_use"} == whole
    assert told.stop_reason == "tool_use"
    assert told.usage.output_tokens > 20
    results = _results()
    back = {
        "role": "assistant",
        "content": [b.model_dump(exclude_none=True, exclude={"parsed_output"}) for b in told.content],
    }
    with talk.anthropic_client(thinking) as client:
        assert _asked(client, [USER, back, results]).stop_reason == "end_turn"


def test_a_stream_holds_pings_and_signatures():
    with WireServer(brain=Thinking(Scripted([talk.CALLING]))) as server:
        text = talk.raw(server, "/v1/messages", talk.small("/v1/messages", stream=True)).text
    for word in (
        "event: ping",
        "signature_delta",
        "thinking_delta",
        "input_json_delta",
        "event: message_stop",
    ):
        assert word in text


def test_altered_thinking_is_refused(thinking):
    with talk.anthropic_client(thinking) as client:
        first = _asked(client, [USER])
        back = {"role": "assistant", "content": [b.model_dump(exclude_none=True) for b in first.content]}
        block = back["content"][0]
        block["thinking" if "thinking" in block else "data"] += "."
        with pytest.raises(anthropic.BadRequestError, match="Invalid `"):
            _asked(client, [USER, back, _results()])


def test_usage_tells_what_the_cache_wrote_and_read():
    mark = {"cache_control": {"type": "ephemeral"}}
    first = {"role": "user", "content": [{"type": "text", "text": "x" * 8000, **mark}]}
    answer = {"role": "assistant", "content": "y"}
    last = {"role": "user", "content": [{"type": "text", "text": "z" * 4000, **mark}]}
    with WireServer() as server, talk.anthropic_client(server) as client:
        one = client.messages.create(model=talk.CLAUDE, max_tokens=2000, messages=[first]).usage
        two = client.messages.create(model=talk.CLAUDE, max_tokens=2000, messages=[first, answer, last]).usage
    assert (one.input_tokens, one.cache_creation_input_tokens, one.cache_read_input_tokens) == (0, 2000, 0)
    assert (two.cache_creation_input_tokens, two.cache_read_input_tokens) == (1000, 2000)


def test_models_and_counts(server):
    with talk.anthropic_client(server) as client:
        assert [model.id for model in client.models.list()] == [talk.GPT, talk.CLAUDE]
        assert client.models.retrieve(talk.CLAUDE).display_name == talk.CLAUDE
        with pytest.raises(anthropic.NotFoundError):
            client.models.retrieve("other")
        assert client.messages.count_tokens(model=talk.CLAUDE, messages=[USER]).input_tokens == 1
    assert server.answered == 0


def test_a_wrong_key_and_an_unknown_model_are_told_as_the_provider_does(server):
    with (
        talk.anthropic_client(server, api_key="wrong") as client,
        pytest.raises(anthropic.AuthenticationError) as no,
    ):
        _asked(client, [USER])
    assert no.value.body["error"] == {"type": "authentication_error", "message": "invalid x-api-key"}
    with (
        talk.anthropic_client(server) as client,
        pytest.raises(anthropic.NotFoundError, match="model: other"),
    ):
        client.messages.create(model="other", max_tokens=5, messages=[USER])


USE = {"type": "tool_use", "id": "c1", "name": "bash", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": "x"}
MARKED = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}


def turn(role, *blocks):
    return {"role": role, "content": list(blocks)}


@pytest.mark.parametrize(
    ("messages", "more", "told"),
    [
        ([], {}, "at least one message"),
        ([USER, USER], {}, "roles must alternate"),
        ([{"role": "assistant", "content": "x"}], {}, "first message must use"),
        ([{"role": "user", "content": ""}], {}, "must have non-empty content"),
        ([turn("user", {"type": "text", "text": ""})], {}, "text content blocks must be non-empty"),
        ([turn("user", {"type": "text", "text": " \n"})], {}, "non-whitespace"),
        ([USER, turn("assistant", USE)], {}, "without `tool_result` blocks"),
        ([USER, turn("assistant", USE), USER], {}, "without `tool_result` blocks"),
        ([USER, turn("assistant", USE), turn("user", MARKED, RESULT)], {}, "without `tool_result` blocks"),
        ([turn("user", RESULT)], {}, "unexpected `tool_use_id`"),
        ([USER, turn("assistant", USE), turn("user", RESULT, RESULT)], {}, "single result"),
        ([USER, turn("assistant", USE, USE), turn("user", RESULT)], {}, "must be unique"),
        ([USER, turn("assistant", {**USE, "input": "{}"}), turn("user", RESULT)], {}, "valid dictionary"),
        ([USER, turn("assistant", {**USE, "id": "a b"}), turn("user", RESULT)], {}, "should match pattern"),
        (
            [USER, turn("assistant", {"type": "thinking", "thinking": "x", "signature": "y"})],
            {},
            "Invalid `signature`",
        ),
        ([turn("user", *[MARKED] * 5)], {}, "A maximum of 4 blocks with cache_control"),
        ([USER], {"max_tokens": None}, "max_tokens: Field required"),
        ([USER], {"temperature": 1.5}, "from 0 to 1"),
        ([USER], {"stop": ["x"]}, "Extra inputs are not permitted"),
        ([USER], {"tool_choice": {"type": "auto"}}, "while providing `tools`"),
        ([USER], {"thinking": {"type": "enabled", "budget_tokens": 5000}}, "greater than"),
    ],
)
def test_messages_refuse_what_the_provider_refuses(server, messages, more, told):
    body = {"model": talk.CLAUDE, "messages": messages, "max_tokens": 2000, **more}
    answer = talk.raw(server, "/v1/messages", body)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert told in answer.json()["error"]["message"]


def test_the_version_must_be_told(server):
    import httpx2

    answer = httpx2.post(
        f"{server.url}/v1/messages", json=talk.small("/v1/messages"), headers={"x-api-key": talk.KEY}
    )
    assert answer.status_code == 400
    assert "anthropic-version" in answer.json()["error"]["message"]


@pytest.mark.parametrize("kept", [True, False])
def test_calls_without_their_thinking_may_be_refused(kept):
    brain = Thinking(talk.tool_script())
    with WireServer(brain=brain, keep_reasoning=True) as server, talk.anthropic_client(server) as client:
        first = _asked(client, [USER])
        blocks = [b.model_dump(exclude_none=True) for b in first.content]
        back = {"role": "assistant", "content": blocks if kept else blocks[1:]}
        if kept:
            assert _asked(client, [USER, back, _results()]).stop_reason == "end_turn"
        else:
            with pytest.raises(anthropic.BadRequestError, match="must start with a thinking block"):
                _asked(client, [USER, back, _results()])
