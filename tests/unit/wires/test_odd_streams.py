"""Whatever JSON a provider streams: it is passed, mended or told, and never breaks the reader."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.wires import WIRES
from dgm.wires.events import ErrorInAnswer, UnusableReply
from tests.support.wires import chat_script, messages_script, responses_script
from tests.support.wires.vendors import BODIES, CHAT, MESSAGES, RESPONSES

pytestmark = pytest.mark.slow

STREAMS = {
    CHAT: [
        chat_script.chunk(
            {"role": "assistant", "content": "x", "reasoning_details": [{"type": "t", "text": "x"}]}
        ),
        chat_script.call(0, "bash", '{"a"', "a"),
        chat_script.piece(0, arguments=":1}"),
        chat_script.chunk({"function_call": {"name": "x", "arguments": "{}"}}),
        chat_script.chunk(finish="tool_calls", usage={"prompt_tokens": 1, "completion_tokens": 1}),
    ],
    RESPONSES: responses_script.told(responses_script.THOUGHT, responses_script.SAID, responses_script.CALL),
    MESSAGES: messages_script.told(
        messages_script.THINKING, messages_script.TEXT, messages_script.CALL, reason="tool_use"
    ),
}
WHOLES = {
    CHAT: {
        **chat_script.chunk(),
        "choices": [{"index": 0, "message": chat_script.MESSAGE, "finish_reason": "stop"}],
    },
    RESPONSES: responses_script.response(
        responses_script.THOUGHT, responses_script.SAID, responses_script.CALL
    ),
    MESSAGES: messages_script.message(messages_script.THINKING, messages_script.TEXT, messages_script.CALL),
}
ODD = st.sampled_from(
    [None, True, -1, 0, 2.5, "", "x", "\ud83d", "😀", [], ["x"], [None], {}, {"x": 1}, [{"type": 1}]]
)


def places(value, path=()):
    """The paths of all values within a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inner:
        yield (*path, name)
        yield from places(one, (*path, name))


def spoiled(event, path, odd):
    event = inner = copy.deepcopy(event)
    for name in path[:-1]:
        inner = inner[name]
    if odd == "gone":
        del inner[path[-1]]
    else:
        inner[path[-1]] = odd
    return event


@pytest.mark.parametrize("protocol", list(STREAMS))
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_odd_values_in_a_stream_never_break_its_reader(protocol, data):
    events = list(STREAMS[protocol])
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(events) - 1))
        found = list(places(events[at]))
        if found:
            path = data.draw(st.sampled_from(found))
            events[at] = spoiled(events[at], path, data.draw(ODD | st.just("gone")))
    wire = WIRES[protocol]
    reader = wire.reader(BODIES[protocol])
    before = copy.deepcopy(events)
    try:
        for event in events:
            for one in reader.take(event, "") or ():
                one.render()
        for done in (False, True):
            try:
                reader.finish(done=done)
            except UnusableReply as told:
                json.dumps(told.reply_whole)
    except ErrorInAnswer:
        pass
    assert events == before
    whole = reader.whole()
    json.dumps(whole, ensure_ascii=False).encode()
    wire.usage(whole, BODIES[protocol])
    wire.stop(whole)
    wire.read_reply(whole, BODIES[protocol])
    wire.split(whole)
    try:
        wire.check(whole)
    except (ErrorInAnswer, UnusableReply):
        pass


@pytest.mark.parametrize("protocol", list(WHOLES))
@settings(max_examples=100, deadline=None)
@given(st.data())
def test_odd_values_in_a_whole_answer_never_break_its_reader(protocol, data):
    whole = WHOLES[protocol]
    for _ in range(data.draw(st.integers(1, 3))):
        if found := list(places(whole)):
            whole = spoiled(whole, data.draw(st.sampled_from(found)), data.draw(ODD | st.just("gone")))
    wire = WIRES[protocol]
    try:
        wire.check(whole)
    except (ErrorInAnswer, UnusableReply):
        pass
    mended = wire.mended(whole, BODIES[protocol])
    json.dumps(mended, ensure_ascii=False).encode()
    wire.usage(mended, BODIES[protocol])
    wire.read_reply(mended, BODIES[protocol])
    wire.split(mended)
