"""Streamed responses pass as they came; what openai's client could not read is mended."""

import pytest

from dgm.wires.wire import ErrorInAnswer, UnusableReply
from tests.support.wires.responses_script import (
    CALL,
    CREATED,
    SAID,
    WIRE,
    calls_of,
    completed,
    delta,
    response,
    texts_of,
    told,
)
from tests.support.wires.vendors import (
    BODIES,
    RESPONSES,
    ask,
    ask_streamed,
    ask_whole,
    passed,
    sse,
    streamed,
)


def test_text_that_only_ends_is_told_as_a_delta():
    done = {
        "type": "response.output_text.done",
        "item_id": "m",
        "output_index": 0,
        "content_index": 0,
        "text": "DONE",
    }
    answer, _ = passed(RESPONSES, sse(CREATED, done, completed(SAID), end=""))
    assert b'"type":"response.output_text.delta"' in answer.content
    assert texts_of(ask(RESPONSES, streamed(answer.content))) == ["DONE"]


def test_missing_beginning_is_added():
    assert texts_of(ask_streamed(RESPONSES, *told(SAID)[2:])[0]) == ["DONE"]
    assert texts_of(ask_streamed(RESPONSES, completed(SAID))[0]) == ["DONE"]


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize(
    "events",
    [
        [],
        [CREATED],
        [
            CREATED,
            {"type": "response.output_item.added", "output_index": 0, "item": {**CALL, "arguments": ""}},
            delta('{"a', "function_call_arguments", item_id="fc_1", output_index=0),
        ],
    ],
)
def test_answer_that_cannot_be_whole_is_unreadable(events, done):
    fold = WIRE.fold(BODIES[RESPONSES])
    for event in events:
        fold.take(event, event["type"])
    with pytest.raises(UnusableReply) as caught:
        fold.finish(done=done)
    assert caught.value.reply_whole is None


def test_missing_usage_is_estimated():
    theirs, ours = ask_streamed(RESPONSES, *told(SAID)[:-1], completed(SAID, usage=None))
    assert theirs.usage.output_tokens == ours["usage"]["output_tokens"] >= 1


def test_arguments_that_are_an_object_become_text():
    item = {**CALL, "arguments": {"a": 1}}
    events = [
        CREATED,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        completed(item),
    ]
    assert calls_of(ask_streamed(RESPONSES, *events)[0]) == [("c1", "bash", {"a": 1})]
    theirs = ask_whole(RESPONSES, response(item, {**item, "call_id": ""}))
    assert calls_of(theirs) == [("c1", "bash", {"a": 1}), ("call_0", "bash", {"a": 1})]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "busy", "param": None},
        {"type": "error", "error": {"message": "busy"}},
        {
            "type": "response.failed",
            "response": response(status="failed", error={"code": "slow_down", "message": "busy"}),
        },
        {
            "type": "response.completed",
            "response": response(status="failed", error={"code": "x", "message": "busy"}),
        },
        {"error": {"message": "busy", "code": 429}},
    ],
)
def test_errors_within_a_stream_are_raised(event):
    fold = WIRE.fold(BODIES[RESPONSES])
    fold.take(CREATED, "response.created")
    with pytest.raises(ErrorInAnswer, match="busy") as caught:
        fold.take(event, event.get("type", ""))
    assert caught.value.body["error"]["message"] == "busy"


def test_the_last_event_decides_the_status():
    theirs, ours = ask_streamed(RESPONSES, *told(SAID)[:-1], completed(SAID, status="in_progress"))
    assert theirs.status == ours["status"] == "completed"
