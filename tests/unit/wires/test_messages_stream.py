"""Streamed messages pass as they came; what anthropic's client could not read is mended."""

import pytest

from dgm.wires.wire import ErrorInAnswer, UnusableReply
from tests.support.wires.messages_script import (
    CALL,
    STOP,
    TEXT,
    THINKING,
    WIRE,
    begin,
    both,
    delta,
    end,
    halt,
    kinds,
    message,
    start,
    told,
    without,
)
from tests.support.wires.vendors import (
    BODIES,
    MESSAGES,
    untouched,
)


@pytest.mark.parametrize("broken", ["start", "delta", "both", "null"])
def test_missing_usage_is_estimated(broken):
    events = told({"type": "text", "text": "x" * 400})
    if broken in ("start", "both"):
        del events[0]["message"]["usage"]
    if broken in ("delta", "both"):
        del events[-2]["usage"]
    if broken == "null":
        events[0]["message"]["usage"] = {"input_tokens": None, "output_tokens": None}
        events[-2]["usage"] = None
    theirs, ours = both(*events)
    assert theirs.usage.input_tokens >= 1
    wanted = {"start": 20, "delta": 1, "both": 100, "null": 100}[broken]
    assert theirs.usage.output_tokens == ours["usage"]["output_tokens"] == wanted


@pytest.mark.parametrize(("content", "reason"), [([TEXT], "end_turn"), ([TEXT, CALL], "tool_use")])
@pytest.mark.parametrize("way", ["null", "none"])
def test_missing_stop_reason_is_added(content, reason, way):
    events = told(*content, reason=None)
    if way == "none":
        del events[-2]
    assert both(*events)[0].stop_reason == reason


def test_done_is_an_end():
    assert both(*told(TEXT)[:-2], done="data: [DONE]\n\n")[0].stop_reason == "end_turn"


def test_stream_without_any_end_may_be_accepted_the_second_time():
    fold = WIRE.fold(BODIES[MESSAGES])
    for event in told(TEXT)[:-2]:
        fold.take(event, event["type"])
    with pytest.raises(UnusableReply) as caught:
        fold.finish(done=False)
    assert caught.value.reply_whole["stop_reason"] == "end_turn"
    fold.finish(done=True)
    assert fold.whole()["stop_reason"] == "end_turn"


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize(
    "events", [[], [start()], [start(), begin({**CALL, "input": {}}), delta("input_json", '{"a')]]
)
def test_answer_that_cannot_be_whole_is_unreadable(events, done):
    fold = WIRE.fold(BODIES[MESSAGES])
    for event in events:
        fold.take(event, event["type"])
    with pytest.raises(UnusableReply) as caught:
        fold.finish(done=done)
    assert caught.value.reply_whole is None


@pytest.mark.parametrize("index", [None, 0, 1, "0"])
def test_blocks_are_told_apart_whatever_their_numbers(index):
    events = told(THINKING, TEXT, CALL, {**CALL, "id": "b"}, reason="tool_use")
    events = [{**event, "index": index} if "index" in event else event for event in events]
    if index is None:
        events = [without(event, "index") if "index" in event else event for event in events]
    theirs, ours = both(*events)
    assert ours["content"] == [THINKING, TEXT, CALL, {**CALL, "id": "b"}]
    assert len(theirs.content) == 4


def test_text_under_the_index_of_another_type_is_not_lost():
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    events = [
        start(),
        begin(thinking),
        delta("thinking", "hm"),
        delta("text", "a"),
        delta("text", "b"),
        end(),
        STOP,
    ]
    assert [block.type for block in both(*events)[0].content] == ["thinking", "text"]


def test_content_in_the_beginning_is_kept():
    begun = {"type": "message_start", "message": {**message(TEXT, reason=None)}}
    events = [
        begun,
        begin({**CALL, "input": {}}, 1),
        delta("input_json", "{}", 1),
        halt(1),
        end("tool_use"),
        STOP,
    ]
    assert untouched(MESSAGES, *events)
    assert [block.type for block in both(*events)[0].content] == ["text", "tool_use"]


def test_second_beginning_and_second_stops_are_dropped():
    events = told(TEXT)
    events.insert(1, events[0])
    events += [STOP]
    events.insert(5, halt())
    assert kinds(*events).count("message_start") == kinds(*events).count("message_stop") == 1
    assert both(*events)[0].content[0].text == "Here."


@pytest.mark.parametrize(
    ("event", "status"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}, None),
        ({"type": "error", "message": "busy"}, None),
        ({"error": {"message": "busy", "code": 500}}, 500),
        ({"base_resp": {"status_code": 1, "status_msg": "busy"}}, None),
    ],
)
def test_errors_are_raised(event, status):
    with pytest.raises(ErrorInAnswer, match="busy") as caught:
        WIRE.fold(BODIES[MESSAGES]).take(event, event.get("type", ""))
    assert caught.value.status == status
    with pytest.raises(ErrorInAnswer, match="busy"):
        WIRE.accept(event, BODIES[MESSAGES])
