"""Streamed and whole responses pass as they came; what openai's client could not read is mended."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.domain import Usage
from dgm.messages import Message, Request, RequestRefused, Role, Stop, Tool, ToolCall, WireReply
from dgm.wires import WIRES, whole_of
from dgm.wires.events import ErrorInAnswer, Unreadable
from tests.unit.wires.vendors import (
    BODIES,
    RESPONSES,
    TURN,
    ask,
    ask_streamed,
    ask_whole,
    passed,
    sse,
    streamed,
    untouched,
)

WIRE = WIRES[RESPONSES]
COUNTS = {
    "input_tokens": 10,
    "input_tokens_details": {"cached_tokens": 4},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 15,
}
TEXT = {"type": "output_text", "text": "DONE", "annotations": []}
SAID = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [TEXT]}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "bash",
    "arguments": '{"a":1}',
    "status": "completed",
}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "hm"}],
    "encrypted_content": "e",
}


def response(*output, status="completed", **more):
    whole = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": list(output),
    }
    fixed = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": COUNTS}
    return {**whole, **fixed, **more}


CREATED = {"type": "response.created", "response": response(status="in_progress", usage=None)}


def completed(*output, **more):
    return {"type": "response.completed", "response": response(*output, **more)}


def delta(text, kind="output_text", **place):
    place = place or {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    return {"type": f"response.{kind}.delta", **place, "delta": text}


def told(*output):
    """A response as OpenAI streams it."""
    return [event.data for event in WIRE.split(response(*output))]


def texts_of(theirs):
    return [part.text for item in theirs.output if item.type == "message" for part in item.content]


def calls_of(theirs):
    return [
        (item.call_id, item.name, json.loads(item.arguments))
        for item in theirs.output
        if item.type == "function_call"
    ]


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
    _, reader = passed(RESPONSES, sse(*events, end=""))
    assert WIRE.stop(reader.whole()) is Stop.LENGTH


def test_deltas_alone_become_an_item():
    theirs, ours = ask_streamed(RESPONSES, CREATED, delta("DO"), delta("NE"), completed())
    assert texts_of(theirs) == ["DONE"]
    assert ours["output"][0]["content"][0]["text"] == "DONE"
    kinds = [
        json.loads(line[6:])["type"]
        for line in passed(RESPONSES, sse(CREATED, delta("x"), completed(), end=""))[0].decode().splitlines()
        if line.startswith("data")
    ]
    assert kinds == [
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_item.done",
        "response.completed",
    ]


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
    content, reader = passed(RESPONSES, sse(*events, end=""))
    return content, reader.whole()


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
    content, _ = passed(RESPONSES, sse(*events, end=""))
    assert {
        event["item_id"]
        for line in content.decode().splitlines()
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
    content, _ = passed(RESPONSES, sse(CREATED, done, completed(SAID), end=""))
    assert b'"type":"response.output_text.delta"' in content
    assert texts_of(ask(RESPONSES, streamed(content))) == ["DONE"]


def test_missing_beginning_is_added():
    assert texts_of(ask_streamed(RESPONSES, *told(SAID)[2:])[0]) == ["DONE"]
    assert texts_of(ask_streamed(RESPONSES, completed(SAID))[0]) == ["DONE"]


@pytest.mark.parametrize("end", ["", "data: [DONE]\n\n"])
def test_missing_completed_event_is_added_where_all_items_are_done(end):
    theirs, ours = ask_streamed(RESPONSES, *told(SAID, CALL)[:-1], end=end)
    assert (texts_of(theirs), calls_of(theirs)) == (["DONE"], [("c1", "bash", {"a": 1})])
    assert theirs.status == ours["status"] == "completed"


def test_item_that_is_not_done_may_be_accepted_the_second_time():
    reader = WIRE.reader(BODIES[RESPONSES])
    for event in (CREATED, delta("x")):
        reader.take(event, event["type"])
    with pytest.raises(Unreadable) as caught:
        reader.finish(done=False)
    assert caught.value.reply_whole["output"][0]["content"][0]["text"] == "x"
    assert [event.name for event in reader.finish(done=True)] == [
        "response.output_item.done",
        "response.completed",
    ]


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
    reader = WIRE.reader(BODIES[RESPONSES])
    for event in events:
        reader.take(event, event["type"])
    with pytest.raises(Unreadable) as caught:
        reader.finish(done=done)
    assert caught.value.reply_whole is None


def test_empty_response_is_unreadable_but_may_be_meant():
    with pytest.raises(Unreadable) as caught:
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
    content, reader = passed(RESPONSES, sse(*begun, *map(delta, units), completed(), end=""))
    events = [json.loads(line[6:]) for line in content.decode().splitlines() if line.startswith("data")]
    wanted = text + ("\ufffd" if cut_off else "")
    assert "".join(event["delta"] for event in events if event["type"].endswith("delta")) == wanted
    assert reader.whole()["output"][0]["content"][0]["text"] == wanted


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
    reader = WIRE.reader(BODIES[RESPONSES])
    reader.take(CREATED, "response.created")
    with pytest.raises(ErrorInAnswer, match="busy") as caught:
        reader.take(event, event.get("type", ""))
    assert caught.value.body["error"]["message"] == "busy"


def test_unknown_events_pass():
    extra = {"type": "response.web_search_call.searching", "output_index": 7, "item_id": "x"}
    assert untouched(
        RESPONSES, *told(SAID)[:-1], extra, {"type": "keepalive"}, told(SAID)[-1] | {"sequence_number": 9}
    )


@pytest.mark.parametrize("whole", [response(SAID), response(CALL), response(THOUGHT, SAID)])
def test_whole_answers_pass_untouched(whole):
    assert WIRE.mended(whole, BODIES[RESPONSES]) is whole
    WIRE.check(whole)
    assert ask_whole(RESPONSES, whole).output[0].id


@pytest.mark.parametrize(
    "whole",
    [{}, {"output": None}, response(), response(SAID, status="in_progress"), response({**CALL, "name": ""})],
)
def test_answers_that_are_none_are_unreadable(whole):
    with pytest.raises(Unreadable):
        WIRE.check(whole)


@pytest.mark.parametrize(
    "whole",
    [
        {"error": {"message": "x"}},
        response(status="failed"),
        {"detail": "x"},
        {"type": "error", "message": "x"},
    ],
)
def test_errors_in_successful_answers_are_raised(whole):
    with pytest.raises(ErrorInAnswer):
        WIRE.check(whole)


def test_whole_answer_is_mended():
    found = ask_whole(
        RESPONSES, {"output": [{"type": "message", "content": "a \ud83d"}, {"type": "reasoning"}]}
    )
    assert texts_of(found) == ["a \ufffd"]
    assert found.status == "completed" and all(item.id for item in found.output)


def test_split_answer_is_read_as_the_same():
    whole = response(
        THOUGHT,
        SAID,
        CALL,
        {"type": "custom_tool_call", "id": "ctc", "call_id": "c2", "name": "x", "input": "in"},
    )
    content = b"".join(event.render() for event in WIRE.split(whole))
    assert [item.id for item in ask(RESPONSES, streamed(content)).output] == ["rs_1", "msg_1", "fc_1", "ctc"]
    assert whole_of(WireReply(RESPONSES, content, True, Usage()), BODIES[RESPONSES]) == whole


def test_tokens_and_stop():
    used = WIRE.usage(response(SAID), BODIES[RESPONSES])
    assert (used.input_tokens, used.output_tokens, used.cached_tokens, used.reasoning_tokens) == (10, 5, 4, 2)
    assert WIRE.usage(response(SAID, usage=None), BODIES[RESPONSES]).output_tokens == 1
    refused = {**SAID, "content": [{"type": "refusal", "refusal": "No."}]}
    filtered = response(SAID, status="incomplete", incomplete_details={"reason": "content_filter"})
    assert [WIRE.stop(one) for one in (response(SAID), response(CALL), response(refused), filtered)] == [
        Stop.END,
        Stop.TOOL_CALLS,
        Stop.REFUSAL,
        Stop.REFUSAL,
    ]


def test_requests():
    body = {"input": [TURN, {**CALL, "arguments": '{"a'}]}
    assert json.loads(WIRE.mended_request(body)["input"][1]["arguments"]) == {"INVALID_JSON": '{"a'}
    sound = {"input": [TURN, CALL]}
    assert WIRE.mended_request(sound) is sound
    assert (WIRE.output_limit({"max_output_tokens": 5}), WIRE.limited({}, 5), WIRE.choices({"n": 2})) == (
        5,
        {"max_output_tokens": 5},
        1,
    )


def test_requests_survive_the_way_through_the_wire():
    request = Request(
        [
            Message(Role.SYSTEM, "Be good."),
            Message(Role.USER, "Hi"),
            Message(Role.ASSISTANT, "x", (ToolCall("a", "bash", '{"c":1}'),)),
            Message(Role.TOOL, "no", call_id="a", failed=True),
        ],
        tools=[Tool("bash", "Runs.", {"type": "object"})],
        model="m",
        max_output_tokens=9,
        tool_choice="required",
        parallel=False,
        effort="low",
    )
    assert WIRE.read_request(WIRE.write_request(request, "m")) == request
    with pytest.raises(RequestRefused):
        WIRE.write_request(Request([], stop=("x",)), "m")


def test_reply_is_read_with_its_reasoning_and_native():
    reply = WIRE.read_reply(response(THOUGHT, SAID, CALL), BODIES[RESPONSES])
    assert (reply.text, reply.reasoning, reply.calls) == ("DONE", "hm", (ToolCall("c1", "bash", '{"a":1}'),))
    turn = Message(Role.ASSISTANT, "DONE", reply.calls, native=reply.native)
    assert WIRE.write_request(Request([turn]), "m")["input"] == [THOUGHT, SAID, CALL]
