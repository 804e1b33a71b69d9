"""Whatever JSON a provider of OpenAI's protocols sends, it is a reply or no answer; nothing else falls out."""

import asyncio
import contextlib
import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.messages import Message, Reply, Request, RequestRefused, Role
from dgm.models import openai_chat, openai_responses
from dgm.models.dialect import Broken
from dgm.models.openai_chunks import assemble

REQUEST = Request((Message(Role.USER, "Go."),))
CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
DETAIL = {"type": "reasoning.text", "text": "Hm.", "signature": None, "index": 0}
TURN = {
    "role": "assistant", "content": "Hi.", "refusal": None, "reasoning_content": "Hm.", "reasoning_details": [DETAIL],
    "function_call": None, "tool_calls": [CALL],
}  # fmt: skip
USAGE = {
    "prompt_tokens": 5,
    "completion_tokens": 5,
    "total_tokens": 10,
    "prompt_tokens_details": {"cached_tokens": 1},
}
CHUNKS = [
    {"choices": [{"index": 0, "delta": TURN, "finish_reason": None}], "usage": None},
    {"choices": [{"index": 0, "delta": {"tool_calls": [{**CALL, "id": None}]}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {"reasoning_details": [DETAIL]}, "finish_reason": "tool_calls"}]},
    {"choices": [], "usage": USAGE},
]
WHOLE = {"choices": [{"index": 0, "message": TURN, "finish_reason": "tool_calls"}], "usage": USAGE}
RESPONSE = {
    "object": "response",
    "status": "completed",
    "incomplete_details": {"reason": "max_output_tokens"},
    "output": [
        {"type": "reasoning", "id": "r", "summary": [{"type": "s", "text": "Hm."}], "encrypted_content": "x"},
        {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "Hi."}]},
        {"type": "function_call", "id": "f", "call_id": "c", "name": "bash", "arguments": "{}"},
    ],
    "usage": {"input_tokens": 5, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 3}},
}  # fmt: skip
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.floats(),
    st.sampled_from(["", "x", "stop", "call_0", "incomplete"]),
    st.lists(st.one_of(st.none(), st.integers(), st.text(max_size=2)), max_size=2),
    st.dictionaries(st.sampled_from(["type", "id", "text", "name"]), st.integers(), max_size=2),
)


def places(value, path=()):
    """Every place in a piece of JSON."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in inner:
        yield from places(part, (*path, name))


@st.composite
def spoiled(draw, valid):
    """The valid JSON with one to three places replaced."""
    value = {"root": copy.deepcopy(valid)}
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from([path for path in places(value) if path]))
        inside = value
        for name in path[:-1]:
            inside = inside[name]
        inside[path[-1]] = draw(JUNK)
    return value["root"]


def sound(reply):
    """Whether a reply is one that can be journaled and sent on."""
    texts = [
        reply.text,
        reply.reasoning,
        *(part for c in reply.calls for part in (c.id, c.name, c.arguments)),
    ]
    used = reply.usage
    return (
        all(isinstance(text, str) for text in texts)
        and all(call.id and call.name for call in reply.calls)
        and len({call.id for call in reply.calls}) == len(reply.calls)
        and used.input_tokens > 0
        and used.output_tokens > 0
        and 0 <= used.cached_tokens + used.written_tokens <= used.input_tokens
        and 0 <= used.reasoning_tokens <= used.output_tokens
    )


def sent_back(reply):
    return Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native)


@settings(max_examples=200, deadline=None)
@given(spoiled(WHOLE))
def test_any_completion_is_a_reply_or_broken(answer):
    if isinstance(answer, dict):
        with contextlib.suppress(Broken):
            check_chat(openai_chat.read(answer, REQUEST))


@settings(max_examples=200, deadline=None)
@given(spoiled(CHUNKS))
def test_any_stream_of_completions_is_a_reply_or_broken(chunks):
    async def drawn():
        for chunk in chunks if isinstance(chunks, list) else []:
            if isinstance(chunk, dict):
                yield chunk

    with contextlib.suppress(Broken):
        check_chat(openai_chat.read(asyncio.run(assemble(drawn())), REQUEST))


@settings(max_examples=200, deadline=None)
@given(spoiled(RESPONSE))
def test_any_response_is_a_reply_or_broken(response):
    if isinstance(response, dict):
        with contextlib.suppress(Broken, RequestRefused):
            reply = openai_responses.read(response, REQUEST)
            assert sound(reply)
            assert openai_responses.arguments(Request((sent_back(reply),)), "m")


def check_chat(reply: Reply):
    assert sound(reply)
    assert openai_chat.arguments(Request((sent_back(reply),)), "m", compatible=True)
