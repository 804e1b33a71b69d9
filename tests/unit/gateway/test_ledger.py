"""What a call may cost at most is set aside: what does not fit is refused, or ends the session."""

import asyncio

import pytest

from dgm.domain import Budget, Usage
from dgm.errors import BudgetExhausted
from dgm.gateway.allowed import BadRequest
from dgm.gateway.ledger import ORDINARY_INPUT, Ledger, input_bound
from dgm.messages import Message, Request, Role
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


def test_a_call_waits_for_what_another_gives_back():
    async def scenario():
        given, order = ledger(20_000), []

        async def call(name, wait):
            async with given.hold("m", given.most("m", asked(), None)):
                order.append(name)
                await asyncio.sleep(wait)

        await asyncio.gather(call("first", 0.01), call("second", 0))
        return order

    assert asyncio.run(asyncio.wait_for(scenario(), 10)) == ["first", "second"]
