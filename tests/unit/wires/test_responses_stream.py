"""Streamed responses pass as they came; what openai's client could not read is mended."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.messages import Stop
from dgm.wires.wire import ErrorInAnswer, UnusableReply
from tests.support.wires.responses_script import (
    CALL,
    CREATED,
    SAID,
    TEXT,
    THOUGHT,
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
    untouched,
)


@pytest.mark.parametrize(
    "output", [[SAID], [CALL], [THOUGHT, SAID, CALL], [{**SAID, "content": [TEXT, TEXT]}]]
)
def test_what_the_client_can_read_passes_untouched(output):
    events = told(*output)
    assert untouched(RESPONSES, *events)
    theirs, ours = ask_streamed(RESPONSES, *events)
    assert [item.type for item in theirs.output] == [item["type"] for item in output]
    assert ours["output"] == output


def test_incomplete_is_an_end():
    whole = response(SAID, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    events = [event.data for event in WIRE.split(whole)]
    assert untouched(RESPONSES, *events)
    answer, _ = passed(RESPONSES, sse(*events, end=""))
    assert WIRE.stop(answer.whole) is Stop.LENGTH


def test_deltas_alone_become_an_item():
    theirs, ours = ask_streamed(RESPONSES, CREATED, delta("DO"), delta("NE"), completed())
    assert texts_of(theirs) == ["DONE"]
    assert ours["output"][0]["content"][0]["text"] == "DONE"
    answer, _ = passed(RESPONSES, sse(CREATED, delta("x"), completed(), end=""))
    kinds = [line[7:] for line in answer.content.decode().splitlines() if line.startswith("event: ")]
    assert kinds[::3] == ["response.created", "response.content_part.added", "response.content_part.done"]


@pytest.mark.parametrize("keep", ["done", "added"])
def test_empty_output_at_the_end_is_filled(keep):
    events = told(THOUGHT, SAID, CALL)
    if keep == "added":
        events = [event for event in events if not event["type"].endswith("output_item.done")]
    events[-1] = completed()
    theirs, ours = ask_streamed(RESPONSES, *events)
    assert texts_of(theirs) == ["DONE"]
    assert calls_of(theirs) == [("c1", "bash", {"a": 1})]
    assert [item["type"] for item in ours["output"]] == ["reasoning", "message", "function_call"]
    assert ours["output"][0]["summary"] == THOUGHT["summary"]


@pytest.mark.parametrize("output", [None, []])
def test_null_output_is_filled_in_an_incomplete_response(output):
    events = told(SAID)[:-1]
    end = {"type": "response.incomplete", "response": response(status="incomplete", output=output)}
    _, ours = ask_streamed_incomplete(*events, end)
    assert ours["output"] == [SAID]


def ask_streamed_incomplete(*events):
    answer, _ = passed(RESPONSES, sse(*events, end=""))
    return answer.content, answer.whole


def test_missing_item_ids_are_made_and_agree():
    def without(event):
        event = {name: value for name, value in event.items() if name != "item_id"}
        if "item" in event:
            event["item"] = {name: value for name, value in event["item"].items() if name != "id"}
        return event

    bare = [{name: value for name, value in item.items() if name != "id"} for item in (SAID, CALL)]
    events = [without(event) for event in told(SAID, CALL)]
    events[-1] = completed(*bare)
    theirs, _ = ask_streamed(RESPONSES, *events)
    ids = [item.id for item in theirs.output]
    assert all(ids) and len(set(ids)) == 2
    answer, _ = passed(RESPONSES, sse(*events, end=""))
    assert {
        event["item_id"]
        for line in answer.content.decode().splitlines()
        if line.startswith("data")
        for event in [json.loads(line[6:])]
        if "item_id" in event
    } == set(ids)


def test_missing_call_ids_are_made():
    bare = {name: value for name, value in CALL.items() if name != "call_id"}
    events = told(bare, {**bare, "id": "fc_2"})
    events[-1] = completed(bare, {**bare, "id": "fc_2"})
    theirs, _ = ask_streamed(RESPONSES, *events)
    assert [name for name, _, _ in calls_of(theirs)] == ["call_0", "call_1"]


def test_ids_that_change_on_the_way_stay_what_they_were():
    events = told(SAID)
    for event in events:
        if event["type"].endswith("item.done"):
            event["item"] = {**SAID, "id": "other"}
    events[-1] = completed({**SAID, "id": "third"}, id="resp_2")
    theirs, _ = ask_streamed(RESPONSES, *events)
    assert (theirs.id, theirs.output[0].id, texts_of(theirs)) == ("resp_1", "msg_1", ["DONE"])


def test_items_with_one_index_stay_apart():
    events = told(SAID, CALL)
    for event in events:
        if "output_index" in event:
            event["output_index"] = 0
    theirs, _ = ask_streamed(RESPONSES, *events)
    assert (texts_of(theirs), calls_of(theirs)) == (["DONE"], [("c1", "bash", {"a": 1})])


def test_items_without_index_are_told_by_their_ids():
    events = [
        {name: value for name, value in event.items() if name != "output_index"} for event in told(SAID, CALL)
    ]
    events[-1] = completed()
    theirs, _ = ask_streamed(RESPONSES, *events)
    assert (texts_of(theirs), calls_of(theirs)) == (["DONE"], [("c1", "bash", {"a": 1})])


def test_missing_content_part_is_announced():
    events = [event for event in told(SAID) if "content_part" not in event["type"]]
    assert texts_of(ask_streamed(RESPONSES, *events)[0]) == ["DONE"]


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


def test_the_last_event_decides_the_status():
    theirs, ours = ask_streamed(RESPONSES, *told(SAID)[:-1], completed(SAID, status="in_progress"))
    assert theirs.status == ours["status"] == "completed"


@pytest.mark.parametrize("end", ["", "data: [DONE]\n\n"])
def test_missing_completed_event_is_added_where_all_items_are_done(end):
    theirs, ours = ask_streamed(RESPONSES, *told(SAID, CALL)[:-1], end=end)
    assert (texts_of(theirs), calls_of(theirs)) == (["DONE"], [("c1", "bash", {"a": 1})])
    assert theirs.status == ours["status"] == "completed"


def test_text_without_a_call_behind_it_may_be_accepted_the_second_time():
    fold = WIRE.fold(BODIES[RESPONSES])
    for event in told(SAID)[:-1]:
        fold.take(event, event["type"])
    with pytest.raises(UnusableReply) as caught:
        fold.finish(done=False)
    assert caught.value.reply_whole["output"][0]["content"][0]["text"] == "DONE"


def test_item_that_is_not_done_may_be_accepted_the_second_time():
    fold = WIRE.fold(BODIES[RESPONSES])
    for event in (CREATED, delta("x")):
        fold.take(event, event["type"])
    with pytest.raises(UnusableReply) as caught:
        fold.finish(done=False)
    assert caught.value.reply_whole["output"][0]["content"][0]["text"] == "x"
    fold.finish(done=True)
    assert fold.whole()["status"] == "completed"


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


def test_empty_response_is_unreadable_but_may_be_meant():
    with pytest.raises(UnusableReply) as caught:
        passed(RESPONSES, sse(CREATED, completed(), end=""))
    assert caught.value.reply_whole["output"] == []


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


@settings(max_examples=25, deadline=None)
@given(st.text(alphabet="a😀", min_size=1, max_size=5), st.booleans())
def test_pairs_survive_any_cut_and_halves_are_replaced(text, cut_off):
    halves = text.encode("utf-16-be", "surrogatepass")
    units = [halves[at : at + 2].decode("utf-16-be", "surrogatepass") for at in range(0, len(halves), 2)]
    units += ["\ud83d"] if cut_off else []
    begun = told(SAID)[:4]
    answer, _ = passed(RESPONSES, sse(*begun, *map(delta, units), completed(), end=""))
    events = [
        json.loads(line[6:]) for line in answer.content.decode().splitlines() if line.startswith("data")
    ]
    wanted = text + ("\ufffd" if cut_off else "")
    assert "".join(event["delta"] for event in events if event["type"].endswith("delta")) == wanted
    assert answer.whole["output"][0]["content"][0]["text"] == wanted


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


def test_unknown_events_pass():
    extra = {"type": "response.web_search_call.searching", "output_index": 7, "item_id": "x"}
    assert untouched(
        RESPONSES, *told(SAID)[:-1], extra, {"type": "keepalive"}, told(SAID)[-1] | {"sequence_number": 9}
    )
