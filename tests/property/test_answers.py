"""Laws of answers: whatever JSON a provider sends in whatever pieces, clients can read it, or it is no answer."""

import copy
import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.domain import Usage
from dgm.messages import Message, Request, Role, WireReply
from dgm.models.receiving import AnswerReader
from dgm.wires import WIRES, whole_of
from dgm.wires.stream import parse_event
from dgm.wires.values import mend_halves
from dgm.wires.wire import DONE, ErrorInAnswer, UnusableReply
from tests.support.wires import chat_script, messages_script, responses_script
from tests.support.wires.vendors import BODIES, CHAT, MESSAGES, RESPONSES, passed, sse

pytestmark = pytest.mark.slow

USER = Message(Role.USER, "Go.")
DETAIL = {"type": "reasoning.text", "text": "hm", "signature": "s", "index": 0}
COUNTS = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
WHOLES = {
    CHAT: {
        **chat_script.chunk(),
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {**chat_script.MESSAGE, "reasoning_details": [DETAIL]},
                "finish_reason": "tool_calls",
            }
        ],
        "usage": COUNTS,
    },
    RESPONSES: responses_script.response(
        responses_script.THOUGHT, responses_script.SAID, responses_script.CALL
    ),
    MESSAGES: messages_script.message(
        messages_script.THINKING, messages_script.TEXT, messages_script.CALL, reason="tool_use"
    ),
}
STREAMS = {
    CHAT: [
        chat_script.chunk({"role": "assistant", "content": "Hä", "reasoning_details": [DETAIL]}),
        chat_script.chunk({"content": "llo"}),
        chat_script.call(0, "bash", '{"a"', "a"),
        chat_script.piece(0, arguments=":1}"),
        chat_script.call(1, "bash", "", "b"),
        chat_script.chunk(finish="tool_calls"),
        {**chat_script.chunk(), "choices": [], "usage": COUNTS},
    ],
    RESPONSES: responses_script.told(responses_script.THOUGHT, responses_script.SAID, responses_script.CALL),
    MESSAGES: messages_script.told(
        messages_script.THINKING, messages_script.TEXT, messages_script.CALL, reason="tool_use"
    ),
}
ODD = st.sampled_from(
    [
        None,
        True,
        -1,
        0,
        1,
        2.5,
        1e400,
        "",
        "x",
        "\ud83d",
        "😀",
        [],
        ["x"],
        [None],
        {},
        {"x": 1},
        [{"type": 1}],
    ]
)
CUTS = st.lists(st.integers(0, 10_000), max_size=8)


def places(value, path=()):
    """The paths of all values within a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield (*path, name)
        yield from places(one, (*path, name))


@st.composite
def spoiled(draw, valid):
    """The valid JSON with up to three places replaced or removed."""
    value = copy.deepcopy(valid)
    for _ in range(draw(st.integers(0, 3))):
        path = draw(st.sampled_from([*places(value)] or [()]))
        inside = value
        for name in path[:-1]:
            inside = inside[name]
        if path and draw(st.booleans()):
            del inside[path[-1]]
        elif path:
            inside[path[-1]] = copy.deepcopy(draw(ODD))
    return value


def without_each_place(valid):
    """Yield the valid JSON without one of its places, for each place."""
    for path in places(valid):
        value = copy.deepcopy(valid)
        inside = value
        for name in path[:-1]:
            inside = inside[name]
        del inside[path[-1]]
        yield value


def spoiled_streams(protocol):
    return spoiled(STREAMS[protocol]).map(lambda events: [one for one in events if isinstance(one, dict)])


def events_of(protocol, events):
    """The events as bytes, each named by its type."""
    text = ""
    for event in events:
        if isinstance(name := event.get("type"), str) and protocol is not CHAT:
            text += f"event: {name}\n"
        text += f"data: {json.dumps(event)}\n\n"
    return (text + ("data: [DONE]\n\n" if protocol is CHAT else "")).encode("utf-8", "replace")


def read(protocol, content, cuts=()):
    """The answer and what was handed on before its end; None where it is no answer."""
    try:
        return passed(protocol, content, cuts=cuts)
    except (UnusableReply, ErrorInAnswer):
        return None


def read_whole(protocol, whole):
    """The answer of a JSON body; None where it is no answer."""
    reader = AnswerReader(WIRES[protocol], BODIES[protocol], BODIES[protocol], streamed=False)
    reader.feed(json.dumps(whole).encode())
    try:
        return reader.end()
    except (UnusableReply, ErrorInAnswer):
        return None


def check_sound(protocol, whole):
    """A whole answer can be counted, journaled, told to another agent, and sent back to its provider."""
    wire, body = WIRES[protocol], BODIES[protocol]
    reply = wire.read_reply(whole, body)
    json.dumps(whole, ensure_ascii=False).encode()
    assert all(isinstance(text, str) for text in (reply.text, reply.reasoning))
    assert all(call.id and call.name and isinstance(call.arguments, str) for call in reply.calls)
    assert len({call.id for call in reply.calls}) == len(reply.calls)
    used = reply.usage
    assert min(used.input_tokens, used.output_tokens) > 0
    assert 0 <= used.cached_tokens + used.written_tokens <= used.input_tokens
    assert 0 <= used.reasoning_tokens <= used.output_tokens
    said = Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native)
    assert wire.write_request(Request((USER, said, USER)), "m")


@pytest.mark.parametrize("protocol", list(STREAMS))
def test_an_answer_that_lacks_one_thing_is_read_as_a_rule(protocol):
    """The laws below say nothing of what is refused, so that they would hold if everything was."""
    assert read(protocol, events_of(protocol, STREAMS[protocol])) is not None
    assert read_whole(protocol, WHOLES[protocol]) is not None
    streams = [events for events in without_each_place(STREAMS[protocol]) if all(events)]
    answers = [read(protocol, events_of(protocol, events)) is not None for events in streams]
    wholes = [read_whole(protocol, whole) is not None for whole in without_each_place(WHOLES[protocol])]
    assert sum(answers) > 0.75 * len(answers)
    assert sum(wholes) > 0.75 * len(wholes)


@pytest.mark.parametrize("protocol", list(STREAMS))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_pieces_of_any_stream_give_the_same_answer(protocol, data):
    content = events_of(protocol, data.draw(spoiled_streams(protocol)))
    assert read(protocol, content, data.draw(CUTS)) == read(protocol, content)


@pytest.mark.parametrize("protocol", list(STREAMS))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_an_agent_is_told_the_answer_that_is_counted_and_can_read_all_of_it(protocol, data):
    events = data.draw(spoiled_streams(protocol))
    found = read(protocol, events_of(protocol, events))
    if events == STREAMS[protocol]:
        assert found is not None
    if found is None:
        return
    answer, _ = found
    check_sound(protocol, answer.whole)
    again = WIRES[protocol].fold({**BODIES[protocol], "stream": True})
    told = whole_of(WireReply(protocol, answer.content, True, Usage()), BODIES[protocol])
    assert (
        WIRES[protocol].read_reply(told, BODIES[protocol]).text
        == WIRES[protocol].read_reply(answer.whole, {}).text
    )
    kept, _ = passed(protocol, answer.content)
    assert kept.content == answer.content
    assert again.spoken is False


@pytest.mark.parametrize("protocol", list(WHOLES))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_whole_answer_is_one_or_none(protocol, data):
    whole = data.draw(spoiled(WHOLES[protocol]))
    answer = read_whole(protocol, whole)
    if whole == WHOLES[protocol]:
        assert answer is not None
    if answer is not None:
        check_sound(protocol, answer.whole)
        assert WIRES[protocol].accept(answer.whole, BODIES[protocol]) == answer.whole


@pytest.mark.parametrize("protocol", list(WHOLES))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_split_answer_is_folded_to_the_same(protocol, data):
    wire, body = WIRES[protocol], BODIES[protocol]
    drawn = data.draw(spoiled(WHOLES[protocol]))
    try:
        whole = wire.accept(mend_halves(parse_event(json.dumps(drawn).encode())[0]), body)
    except (UnusableReply, ErrorInAnswer):
        assert drawn != WHOLES[protocol]
        return
    fold = wire.fold(body)
    sound = [fold.take(event.data, event.name) for event in wire.split(whole) if event.data != DONE]
    assert all(sound) and fold.complete
    first, second = (wire.read_reply(one, body) for one in (fold.whole(), whole))
    assert replace(first, native=None) == replace(second, native=None)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.floats()
    | st.sampled_from(["x", *(name for one in WHOLES for name in [one])]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "choices",
                    "delta",
                    "index",
                    "item",
                    "content",
                    "part",
                    "message",
                    "tool_calls",
                    "function",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("protocol", list(STREAMS))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_fold_raises_its_errors_only(protocol, data):
    kinds = [str(event.get("type")) for event in STREAMS[protocol]]
    event = data.draw(
        st.dictionaries(st.sampled_from(["delta", "index", "output_index", "item", "choices"]), JSON)
    )
    fold = WIRES[protocol].fold(BODIES[protocol])
    try:
        for one in (*STREAMS[protocol][: data.draw(st.integers(0, 3))], event):
            name = data.draw(st.sampled_from(kinds))
            fold.take(
                {"type": name, **one} if protocol is not CHAT else one, name if protocol is not CHAT else ""
            )
        fold.finish(done=True)
    except (UnusableReply, ErrorInAnswer):
        pass
    assert isinstance(fold.whole(), dict)
    assert json.dumps(fold.whole())


def test_nothing_is_an_answer_by_mistake():
    for protocol in STREAMS:
        assert read(protocol, sse({}, end="")) is None
