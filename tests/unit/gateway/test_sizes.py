"""How many input tokens a raw request can have at most."""

import json

from dgm.gateway.ledger import CALL_TOKENS, MeasuredRequest, input_bound
from dgm.messages import WireProtocol, WireRequest


def turn(text):
    return {"role": "user", "content": text}


def raw(*turns, **body):
    return WireRequest(WireProtocol.CHAT, {"messages": list(turns), **body})


def size(value):
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def test_a_request_has_at_most_a_token_a_byte():
    request = raw(turn("größer"))
    assert input_bound(request) == CALL_TOKENS + size(request.body)


def test_what_an_answered_request_holds_counts_as_it_was_counted():
    before = MeasuredRequest(raw(turn("a" * 500)), 150)
    further = turn("b" * 100)
    assert input_bound(raw(turn("a" * 500), further), before) == 150 + CALL_TOKENS + size([further])


def test_a_request_with_other_tools_or_other_turns_does_not_go_on():
    before = MeasuredRequest(raw(turn("a" * 500)), 150)
    for request in (raw(turn("a" * 500), turn("b"), tools=[{}]), raw(turn("c" * 500), turn("b"))):
        assert input_bound(request, before) == CALL_TOKENS + size(request.body)
