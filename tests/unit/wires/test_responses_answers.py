"""Whole responses, and requests of Responses: mended, checked, counted, split, read and written."""

import pytest

from dgm.messages import Message, Request, RequestRefused, Role, Stop, Tool, ToolCall
from dgm.wires.wire import ErrorInAnswer, UnusableReply
from tests.support.wires.responses_script import (
    CALL,
    SAID,
    THOUGHT,
    WIRE,
    response,
    texts_of,
)
from tests.support.wires.vendors import (
    BODIES,
    RESPONSES,
    ask_whole,
)


@pytest.mark.parametrize(
    "whole",
    [{}, {"output": None}, response(), response(SAID, status="in_progress"), response({**CALL, "name": ""})],
)
def test_answers_that_are_none_are_unreadable(whole):
    with pytest.raises(UnusableReply):
        WIRE.accept(whole, BODIES[RESPONSES])


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
        WIRE.accept(whole, BODIES[RESPONSES])


def test_whole_answer_is_mended():
    found = ask_whole(
        RESPONSES, {"output": [{"type": "message", "content": "a \ud83d"}, {"type": "reasoning"}]}
    )
    assert texts_of(found) == ["a \ufffd"]
    assert found.status == "completed" and all(item.id for item in found.output)


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
