"""Streamed messages pass as they came; what anthropic's client could not read is mended."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    TURN,
    ask,
    passed,
    sse,
    streamed,
    untouched,
)


@pytest.mark.parametrize(
    "content",
    [
        [TEXT],
        [CALL],
        [THINKING, TEXT, CALL, CALL | {"id": "b"}],
        [{"type": "redacted_thinking", "data": "x"}, TEXT],
    ],
)
def test_what_the_client_can_read_passes_untouched(content):
    first, *rest = told(*content, reason="tool_use" if CALL in content else "end_turn")
    events = [first, {"type": "ping"}, *rest]
    assert untouched(MESSAGES, *events)
    assert both(*events)[1]["content"] == content


def test_unknown_events_and_deltas_pass():
    odd = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "citations_delta", "citation": {"n": n}},
        }
        for n in (1, 2)
    ] + [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "later_delta", "later": piece}}
        for piece in ("a", "b")
    ]
    events = [
        start(),
        begin({"type": "text", "text": ""}),
        delta(),
        *odd,
        halt(),
        {"type": "later", "x": 1},
        end(),
        STOP,
    ]
    assert untouched(MESSAGES, *events)
    answer, _ = passed(MESSAGES, sse(*events, end=""))
    assert answer.whole["content"] == [{"type": "text", "text": "x", "citations": [{"n": 1}, {"n": 2}]}]


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


def test_usage_within_the_delta_is_found():
    event = {"type": "message_delta", "delta": {"stop_reason": "end_turn", "usage": {"output_tokens": 15}}}
    events = [start(), begin(TEXT), halt(), event, STOP]
    assert both(*events)[0].usage.output_tokens == 15


@pytest.mark.parametrize("second", [{"stop_reason": None}, {}, {"stop_reason": None, "stop_sequence": None}])
def test_second_message_delta_does_not_undo_the_first(second):
    first = {
        "type": "message_delta",
        "delta": {"stop_reason": "stop_sequence", "stop_sequence": "X"},
        "usage": {"output_tokens": 1},
    }
    late = {"type": "message_delta", "delta": second, "usage": {"output_tokens": 20}}
    theirs, _ = both(start(), begin(TEXT), halt(), first, late, STOP)
    assert (theirs.stop_reason, theirs.stop_sequence, theirs.usage.output_tokens) == (
        "stop_sequence",
        "X",
        20,
    )


def test_tokens_before_the_reason_pass():
    early = {
        "type": "message_delta",
        "delta": {"stop_reason": None, "stop_sequence": None},
        "usage": {"output_tokens": 3},
    }
    assert untouched(MESSAGES, start(), begin(TEXT), halt(), early, end(), STOP)


def test_missing_message_stop_is_added_behind_a_reason():
    events = told(TEXT)[:-1]
    assert both(*events)[0].stop_reason == "end_turn"
    assert kinds(*events)[-1] == "message_stop"


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


@pytest.mark.parametrize(
    ("events", "kept"), [([start(), end(), STOP], []), ([*told(TEXT, reason="tool_use")], [TEXT])]
)
def test_empty_answers_are_unreadable_but_may_be_meant(events, kept):
    with pytest.raises(UnusableReply) as caught:
        passed(MESSAGES, sse(*events, end=""))
    assert caught.value.reply_whole["content"] == kept


@pytest.mark.parametrize("reason", ["max_tokens", "refusal"])
def test_empty_answer_with_a_reason_is_one(reason):
    assert untouched(MESSAGES, start(), end(reason), STOP)


@pytest.mark.parametrize(
    ("block", "field"),
    [(TEXT, "text"), (THINKING, "thinking"), (THINKING, "signature"), (CALL, "input"), (CALL, "id")],
)
def test_blocks_that_begin_without_a_field(block, field):
    events = [
        without(event, "content_block", field) if "content_block" in event else event
        for event in told(block, TEXT)
    ]
    theirs, _ = both(*events)
    found = theirs.content[0].model_dump()
    if field == "id":
        assert found["id"] == "call_0"
    else:
        assert found[field] == block[field]


@pytest.mark.parametrize("index", [None, 0, 1, "0"])
def test_blocks_are_told_apart_whatever_their_numbers(index):
    events = told(THINKING, TEXT, CALL, {**CALL, "id": "b"}, reason="tool_use")
    events = [{**event, "index": index} if "index" in event else event for event in events]
    if index is None:
        events = [without(event, "index") if "index" in event else event for event in events]
    theirs, ours = both(*events)
    assert ours["content"] == [THINKING, TEXT, CALL, {**CALL, "id": "b"}]
    assert len(theirs.content) == 4


def test_indices_that_begin_late_are_counted_anew():
    events = [
        {**event, "index": event["index"] + 3} if "index" in event else event for event in told(TEXT, CALL)
    ]
    assert [block.type for block in both(*events)[0].content] == ["text", "tool_use"]


def test_calls_with_one_id_get_two():
    earlier = {"role": "assistant", "content": [{**CALL, "id": "x"}]}
    request = {**BODIES[MESSAGES], "messages": [TURN, earlier]}
    events = told({**CALL, "id": "x"}, {**CALL, "id": "a"}, {**CALL, "id": "a"}, reason="tool_use")
    theirs, _ = both(*events, request=request)
    assert len({block.id for block in theirs.content} | {"x"}) == 4


def test_deltas_without_a_block_begin_one():
    events = [start(), delta(text="a"), delta(text="b"), end(), STOP]
    assert both(*events)[0].content[0].text == "ab"
    assert kinds(*events) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


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


def test_missing_beginning_is_added():
    assert both(*told(TEXT)[1:])[0].content[0].text == "Here."


@pytest.mark.parametrize("broken", ["content", "role", "type", "id"])
def test_message_that_begins_without_a_field(broken):
    events = told(TEXT)
    del events[0]["message"][broken]
    assert both(*events)[0].content[0].text == "Here."


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


def test_events_without_a_name_get_one():
    assert both(*told(TEXT), named=False)[0].content[0].text == "Here."


def test_names_stand_for_missing_types():
    lines = [
        f"event: {event['type']}\ndata: {json.dumps(without(event, 'type'))}\n\n" for event in told(TEXT)
    ]
    answer, _ = passed(MESSAGES, "".join(lines).encode())
    assert ask(MESSAGES, streamed(answer.content)).content[0].text == "Here."


def test_input_that_is_an_object_becomes_text():
    events = [
        start(),
        begin({**CALL, "input": {}}),
        delta("input_json", {"a": 1}),
        halt(),
        end("tool_use"),
        STOP,
    ]
    assert both(*events)[0].content[0].input == {"a": 1}


def test_input_that_comes_whole_at_the_beginning_is_kept():
    assert untouched(MESSAGES, start(), begin(CALL), halt(), end("tool_use"), STOP)
    assert both(start(), begin(CALL), halt(), end("tool_use"), STOP)[0].content[0].input == CALL["input"]


def test_cut_off_input_is_kept_as_text():
    events = [
        start(),
        begin({**CALL, "input": {}}),
        delta("input_json", '{"a": "b'),
        halt(),
        end("max_tokens"),
        STOP,
    ]
    assert untouched(MESSAGES, *events)
    answer, _ = passed(MESSAGES, sse(*events, end=""))
    assert answer.whole["content"][0]["input"] == {"INVALID_JSON": '{"a": "b'}


@settings(max_examples=25, deadline=None)
@given(st.text(alphabet="a😀", min_size=1, max_size=5), st.booleans(), st.sampled_from(["text", "thinking"]))
def test_pairs_survive_any_cut_and_halves_are_replaced(text, cut_off, kind):
    halves = text.encode("utf-16-be", "surrogatepass")
    units = [halves[at : at + 2].decode("utf-16-be", "surrogatepass") for at in range(0, len(halves), 2)]
    units += ["\ud83d"] if cut_off else []
    begun = {"type": kind, kind: ""} | ({"signature": ""} if kind == "thinking" else {})
    theirs, _ = both(start(), begin(begun), *(delta(kind, unit) for unit in units), halt(), end(), STOP)
    assert getattr(theirs.content[0], kind) == text + ("\ufffd" if cut_off else "")


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
