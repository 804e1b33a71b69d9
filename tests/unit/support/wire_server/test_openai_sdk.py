"""The official ``openai`` package understands everything that the server says."""

import json

import openai
import pytest

from dgm.domain import Usage
from dgm.messages import Reply, Role, Stop
from tests.support import wire_conversations as talk
from tests.support.wire_server import Echo, Scripted, Style, Thinking, WireServer

pytestmark = pytest.mark.slow

MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "look"}]


@pytest.fixture
def server():
    with WireServer(brain=talk.tool_script()) as opened:
        yield opened


@pytest.fixture
def thinking():
    with WireServer(brain=Thinking(talk.tool_script())) as opened:
        yield opened


def test_chat_calls_tools_and_takes_their_results(server):
    with talk.openai_client(server) as client:
        first = client.chat.completions.create(model=talk.GPT, messages=MESSAGES, tools=[talk.CHAT_TOOL])
        said = first.choices[0].message
        assert (said.content, first.choices[0].finish_reason) == (talk.SAYS, "tool_calls")
        assert [(c.id, c.function.name, c.function.arguments) for c in said.tool_calls] == [
            (c.id, c.name, c.arguments) for c in talk.CALLS
        ]
        results = [{"role": "tool", "tool_call_id": c.id, "content": f"result of {c.id}"} for c in talk.CALLS]
        more = [*MESSAGES, said.model_dump(exclude_none=True, exclude={"annotations"}), *results]
        last = client.chat.completions.create(model=talk.GPT, messages=more, tools=[talk.CHAT_TOOL])
    assert (last.choices[0].message.content, last.choices[0].finish_reason) == ("Done.", "stop")
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (90, 3)
    heard = server.app.config.brain.asked[1].messages
    assert [m.role for m in heard] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TOOL]
    assert heard[2].calls == talk.CALLS
    assert server.answered == 2


def test_chat_streams_text_calls_and_usage(server):
    with talk.openai_client(server) as client:
        options = {"include_usage": True}
        helper = client.chat.completions.stream(
            model=talk.GPT, messages=MESSAGES, tools=[talk.CHAT_TOOL], stream_options=options
        )
        with helper as stream:
            kinds = {event.type for event in stream}
            whole = stream.get_final_completion()
    assert {"chunk", "content.delta", "tool_calls.function.arguments.delta"} <= kinds
    message = whole.choices[0].message
    assert message.content == talk.SAYS
    assert [c.function.arguments for c in message.tool_calls] == [c.arguments for c in talk.CALLS]
    assert whole.usage.total_tokens == 70


def test_chat_tells_the_usage_of_a_stream_only_when_asked(server):
    with talk.openai_client(server) as client:
        chunks = list(client.chat.completions.create(model=talk.GPT, messages=MESSAGES, stream=True))
    assert all(chunk.usage is None for chunk in chunks)
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_chat_tells_reasoning_as_servers_of_open_models_do(thinking):
    with talk.openai_client(thinking) as client:
        said = client.chat.completions.create(model=talk.GPT, messages=MESSAGES)
        assert "Let me see" in said.choices[0].message.reasoning_content
        assert said.usage.completion_tokens_details.reasoning_tokens > 0


def _asked(client, **more):
    return client.responses.create(
        model=talk.GPT,
        tools=[talk.RESPONSES_TOOL],
        include=["reasoning.encrypted_content"],
        store=False,
        **more,
    )


def test_responses_call_tools_and_take_their_results_and_reasoning_back(thinking):
    start = [{"role": "user", "content": "look"}]
    with talk.openai_client(thinking) as client:
        first = _asked(client, input=start, instructions="be brief")
        assert [item.type for item in first.output] == [
            "reasoning",
            "message",
            "function_call",
            "function_call",
        ]
        assert first.output_text == talk.SAYS
        assert first.usage.output_tokens_details.reasoning_tokens > 0
        back = [item.model_dump(exclude_none=True) for item in first.output]
        results = [{"type": "function_call_output", "call_id": c.id, "output": "ok"} for c in talk.CALLS]
        last = _asked(client, input=[*start, *back, *results], instructions="be brief")
    assert last.output_text == "Done."
    assert last.status == "completed"


@pytest.mark.parametrize("spoil", ["encrypted_content", "id"])
def test_responses_refuse_altered_reasoning(thinking, spoil):
    start = [{"role": "user", "content": "look"}]
    with talk.openai_client(thinking) as client:
        back = [item.model_dump(exclude_none=True) for item in _asked(client, input=start).output]
        back[0][spoil] += "0"
        results = [{"type": "function_call_output", "call_id": c.id, "output": "ok"} for c in talk.CALLS]
        with pytest.raises(openai.BadRequestError, match="could not be verified") as refused:
            _asked(client, input=[*start, *back, *results])
    assert refused.value.code == "invalid_encrypted_content"


@pytest.mark.parametrize("kept", [True, False])
def test_calls_without_their_reasoning_may_be_refused(kept):
    start = [{"role": "user", "content": "look"}]
    brain = Thinking(talk.tool_script())
    with WireServer(brain=brain, keep_reasoning=True) as server, talk.openai_client(server) as client:
        back = [item.model_dump(exclude_none=True) for item in _asked(client, input=start).output]
        results = [{"type": "function_call_output", "call_id": c.id, "output": "ok"} for c in talk.CALLS]
        if kept:
            assert _asked(client, input=[*start, *back, *results]).output_text == "Done."
        else:
            with pytest.raises(openai.BadRequestError, match="required 'reasoning' item"):
                _asked(client, input=[*start, *back[1:], *results])


def test_responses_stream_numbered_events(thinking):
    asked = {"model": talk.GPT, "input": "look", "tools": [talk.RESPONSES_TOOL]}
    with talk.openai_client(thinking) as client, client.responses.stream(**asked) as stream:
        events = list(stream)
        whole = stream.get_final_response()
    assert [event.sequence_number for event in events] == list(range(len(events)))
    kinds = [event.type for event in events]
    assert kinds[:3] == ["response.created", "response.in_progress", "response.output_item.added"]
    assert kinds[-1] == "response.completed"
    assert {"response.reasoning_summary_text.delta", "response.function_call_arguments.done"} <= set(kinds)
    assert whole.output_text == talk.SAYS
    assert [item.arguments for item in whole.output if item.type == "function_call"] == [
        c.arguments for c in talk.CALLS
    ]


def test_plain_and_streamed_response_are_the_same():
    with WireServer(brain=Scripted([talk.CALLING])) as server, talk.openai_client(server) as client:
        plain = client.responses.create(model=talk.GPT, input="look", tools=[talk.RESPONSES_TOOL])
        events = list(
            client.responses.create(model=talk.GPT, input="look", tools=[talk.RESPONSES_TOOL], stream=True)
        )
    named = {"id", "output"}
    assert [item.type for item in events[-1].response.output] == [item.type for item in plain.output]
    assert events[-1].response.model_dump(exclude=named) == plain.model_dump(exclude=named)


def test_output_limits_end_an_answer():
    with WireServer(brain=Echo()) as server, talk.openai_client(server) as client:
        long = "a long word " * 50
        said = client.chat.completions.create(
            model=talk.GPT, messages=[{"role": "user", "content": long}], max_completion_tokens=20
        )
        told = client.responses.create(model=talk.GPT, input=long, max_output_tokens=20)
        last = list(client.responses.create(model=talk.GPT, input=long, max_output_tokens=20, stream=True))[
            -1
        ]
    assert (said.choices[0].finish_reason, said.usage.completion_tokens) == ("length", 20)
    assert (told.status, told.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert last.type == "response.incomplete"


def test_the_cache_holds_what_an_earlier_request_said():
    long = [{"role": "user", "content": "x" * 8000}, {"role": "assistant", "content": "y"}]
    with WireServer() as server, talk.openai_client(server) as client:
        first = client.chat.completions.create(model=talk.GPT, messages=long[:1])
        later = client.chat.completions.create(
            model=talk.GPT, messages=[*long, {"role": "user", "content": "z"}]
        )
    assert first.usage.prompt_tokens_details.cached_tokens == 0
    assert later.usage.prompt_tokens_details.cached_tokens == 1920


def test_a_brain_may_state_the_tokens():
    reply = Reply("ok", usage=Usage(1, 1000, 50, 0.0, 300, 0, 30))
    with WireServer(brain=Scripted([reply])) as server, talk.openai_client(server) as client:
        used = client.responses.create(model=talk.GPT, input="hi").usage
    assert (used.input_tokens, used.input_tokens_details.cached_tokens) == (1000, 300)
    assert (used.output_tokens, used.output_tokens_details.reasoning_tokens) == (50, 30)


def test_models_are_listed_and_named(server):
    with talk.openai_client(server) as client:
        assert [model.id for model in client.models.list()] == [talk.GPT, talk.CLAUDE]
        assert client.models.retrieve(talk.GPT).owned_by == "wire-server"
        with pytest.raises(openai.NotFoundError):
            client.models.retrieve("other")


def test_a_wrong_key_and_an_unknown_model_are_told_as_the_provider_does(server):
    with talk.openai_client(server, api_key="sk-a-wrong-key-of-some-length") as client:
        with pytest.raises(openai.AuthenticationError) as refused:
            client.models.list()
        assert refused.value.code == "invalid_api_key"
    with talk.openai_client(server) as client, pytest.raises(openai.NotFoundError) as refused:
        client.responses.create(model="other", input="hi")
    assert refused.value.code == "model_not_found"
    assert server.answered == 0


CALL = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
USER = {"role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("messages", "more", "told"),
    [
        ([], {}, "empty array"),
        ([USER, {"role": "tool", "tool_call_id": "c1", "content": "x"}], {}, "must be a response"),
        ([USER, {"role": "assistant", "tool_calls": [CALL]}], {}, "did not have response messages: c1"),
        ([USER, {"role": "assistant", "tool_calls": [CALL]}, USER], {}, "did not have response messages: c1"),
        ([{"role": "user", "content": None}], {}, "got null"),
        ([USER], {"tool_choice": "auto"}, "only allowed when 'tools'"),
        ([USER], {"nonsense": 1}, "Unknown parameter: 'nonsense'"),
        ([USER], {"stream_options": {"include_usage": True}}, "only allowed when 'stream'"),
        ([USER], {"temperature": 3}, "from 0 to 2"),
        ([USER], {"max_tokens": 5, "max_completion_tokens": 5}, "at the same time"),
        ([USER], {"tools": []}, "empty array"),
        ([USER], {"stop": list("abcde")}, "array too long"),
    ],
)
def test_chat_refuses_what_the_provider_refuses(server, messages, more, told):
    answer = talk.raw(server, "/v1/chat/completions", {"model": talk.GPT, "messages": messages, **more})
    assert answer.status_code == 400
    assert told in answer.json()["error"]["message"]
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert server.requests[-1].error == answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("items", "more", "told"),
    [
        ([], {}, "empty array"),
        ([{"type": "function_call_output", "call_id": "c1", "output": "x"}], {}, "No tool call found"),
        (
            [{"type": "function_call", "call_id": "c1", "name": "b", "arguments": "{}"}],
            {},
            "No tool output found",
        ),
        ([{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}], {}, "Supported values"),
        ([{"type": "reasoning", "id": "rs_1", "summary": []}, USER], {}, "required following item"),
        ([{"type": "reasoning", "id": "rs_1", "summary": []}], {"store": False}, "not persisted"),
        ([USER], {"previous_response_id": "resp_1"}, "not found"),
        ([USER], {"max_tokens": 7}, "Unknown parameter"),
        ([USER], {"tools": [{"type": "web_search"}]}, "Invalid value: 'web_search'"),
    ],
)
def test_responses_refuse_what_the_provider_refuses(server, items, more, told):
    answer = talk.raw(server, "/v1/responses", {"model": talk.GPT, "input": items, **more})
    assert answer.status_code in (400, 404)
    assert told in answer.json()["error"]["message"]


def test_every_reply_of_a_script_is_told_to_one_wire_alike():
    reply = Reply("", (talk.CALLS[0],), Stop.TOOL_CALLS)
    with (
        WireServer(brain=Scripted([reply]), style=Style(piece=1)) as server,
        talk.openai_client(server) as client,
    ):
        chunks = list(client.chat.completions.create(model=talk.GPT, messages=MESSAGES, stream=True))
    parts = [c.choices[0].delta.tool_calls for c in chunks if c.choices and c.choices[0].delta.tool_calls]
    assert json.loads("".join(part[0].function.arguments for part in parts)) == json.loads(talk.ARGUMENTS)
    assert len(parts) > len(talk.ARGUMENTS)
