"""What a call may cost at most is set aside: what does not fit is refused, or ends the session."""

import asyncio
import json
from dataclasses import replace

import pytest

from dgm.domain import Budget, Usage
from dgm.errors import BudgetExhausted
from dgm.gateway.allowed import BadRequest
from dgm.gateway.ledger import CALL_TOKENS, ORDINARY_INPUT, Ledger, MeasuredRequest, input_bound
from dgm.messages import Message, Request, Role, WireProtocol, WireRequest
from tests.support.gateway.bench import PRICE


def asked(size=4):
    return Request((Message(Role.USER, "x" * size),), max_output_tokens=16_000)


def ledger(tokens, spent=0):
    return Ledger({"m": PRICE}, lambda: Usage(1, spent), lambda: Budget(tokens=tokens))


async def held(given, request):
    async with given.hold("m", given.most("m", request, None)):
        return given.exhausted


def hold(given, request):
    return asyncio.run(asyncio.wait_for(held(given, request), 10))


@pytest.mark.parametrize("lacking", [0, 1])
def test_a_call_that_does_not_fit_alone_ends_the_session(lacking):
    request = asked()
    given = ledger(input_bound(request) + 16_000, spent=lacking)
    if not lacking:
        assert hold(given, request) == ""
        return
    with pytest.raises(BudgetExhausted, match="tokens are spent"):
        hold(given, request)
    assert given.exhausted.startswith("1 of ")


def test_one_request_that_is_too_large_ends_no_session_that_can_afford_ordinary_ones():
    given = ledger(ORDINARY_INPUT + 16_000)
    with pytest.raises(BadRequest, match="the request is too large for what is left"):
        hold(given, asked(ORDINARY_INPUT + 1))
    assert not given.exhausted
    with pytest.raises(BudgetExhausted):
        hold(ledger(ORDINARY_INPUT + 16_000 - 1), asked(ORDINARY_INPUT + 1))


@pytest.mark.parametrize("budget", [Budget(tokens=20_000), Budget(usd=0.2)])
async def test_a_call_waits_for_what_another_gives_back(budget):
    ledger, active, most = Ledger({"m": PRICE}, Usage, lambda: budget), 0, 0

    async def call():
        nonlocal active, most
        async with ledger.hold("m", ledger.most("m", asked(), None)):
            active += 1
            most = max(most, active)
            await asyncio.sleep(0.01)
            active -= 1

    await asyncio.gather(*(call() for _ in range(4)))
    assert most == 1


def test_no_call_is_longer_than_the_context_of_its_model():
    ledger = Ledger({"m": replace(PRICE, context=100)}, Usage, Budget)
    assert ledger.most("m", asked(1_000_000), None).input_tokens == 100


# How many input tokens a raw request can have at most


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
