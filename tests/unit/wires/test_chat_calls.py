"""Pieces of streamed tool calls find their call, whatever indices and ids a server gives them."""

import pytest

from tests.support.wires.chat_script import OFFERED, both, call, calls_of, chunk, piece
from tests.support.wires.vendors import TURN


@pytest.mark.parametrize("index", [None, 0, 1, 3, "0"])
@pytest.mark.parametrize("ids", [("a", "b"), ("", ""), (None, None), ("a", "a")])
def test_calls_are_told_apart_whatever_their_numbers(index, ids):
    events = []
    for call_id, name in zip(ids, ("bash", "edit"), strict=True):
        events.append(piece(index, name, "", id=call_id, type="function"))
        events += [piece(index, arguments='{"n"'), piece(index, arguments=f': "{name}"}}')]
    theirs, _ = both(*events, chunk(finish="tool_calls"), request=OFFERED)
    assert [(name, said) for _, name, said in calls_of(theirs)] == [
        ("bash", {"n": "bash"}),
        ("edit", {"n": "edit"}),
    ]
    assert len({name for name, _, _ in calls_of(theirs)}) == 2


def test_id_and_name_in_every_piece_are_said_once():
    events = [call(0, "bash", part, "0") for part in ("", '{"a"', ":1}")]
    theirs, _ = both(*events, chunk(finish="tool_calls"), request=OFFERED)
    assert calls_of(theirs) == [("0", "bash", {"a": 1})]


def test_call_that_is_sent_again_whole_at_the_end_is_dropped():
    events = [call(0, "bash", '{"a":1}', "x"), call(0, "bash", '{"a":1}', "x"), chunk(finish="tool_calls")]
    theirs, _ = both(*events)
    assert calls_of(theirs) == [("x", "bash", {"a": 1})]


def test_id_of_an_earlier_call_is_replaced():
    earlier = {
        "role": "assistant",
        "tool_calls": [{"id": "call_0", "function": {"name": "bash", "arguments": "{}"}}],
    }
    request = {"messages": [TURN, earlier]}
    theirs, _ = both(call(0, "bash", "{}", "call_0"), chunk(finish="tool_calls"), request=request)
    assert calls_of(theirs) == [("call_1", "bash", {})]


def test_fields_beside_a_call_are_kept():
    event = call(None, "bash", "{}", "x")
    event["choices"][0]["delta"]["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": "s"}}
    _, ours = both(event, chunk(finish="stop"))
    assert ours["choices"][0]["message"]["tool_calls"][0]["extra_content"] == {
        "google": {"thought_signature": "s"}
    }


def test_arguments_that_are_an_object_become_text():
    theirs, _ = both(call(0, "bash", {"a": "ä"}, "x"), chunk(finish="tool_calls"))
    assert calls_of(theirs) == [("x", "bash", {"a": "ä"})]
