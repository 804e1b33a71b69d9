"""What a call may cost at most is set aside: what does not fit is shortened, refused, or ends the session."""

import asyncio

import pytest

from dgm.domain import Budget, Usage
from dgm.errors import BudgetExhausted
from dgm.gateway.allowed import BadRequest
from dgm.gateway.ledger import LEAST_OUTPUT, ORDINARY_INPUT, Ledger, input_bound, output_limit
from dgm.messages import Message, Request, Role
from tests.support.gateway.bench import PRICE


def asked(size=4):
    return Request((Message(Role.USER, "x" * size),), max_output_tokens=16_000)


def ledger(tokens, spent=0):
    return Ledger({"m": PRICE}, lambda: Usage(1, spent), lambda: Budget(tokens=tokens))


async def held(given, request):
    async with given.hold("m", request, None) as allowed:
        return output_limit(allowed)


def hold(given, request):
    return asyncio.run(asyncio.wait_for(held(given, request), 10))


def test_a_call_that_fits_keeps_its_limit():
    assert hold(ledger(100_000), asked()) == 16_000


def test_a_call_that_does_not_fit_alone_may_have_what_is_left():
    request = asked()
    assert hold(ledger(10_000, spent=2_000), request) == 8_000 - input_bound(request)


@pytest.mark.parametrize("more", [0, -1])
def test_where_less_than_a_useful_answer_is_left_the_session_ends(more):
    request = asked()
    given = ledger(input_bound(request) + LEAST_OUTPUT + more)
    if not more:
        assert hold(given, request) == LEAST_OUTPUT
        return
    with pytest.raises(BudgetExhausted, match="tokens are spent"):
        hold(given, request)
    assert given.exhausted


def test_one_request_that_is_too_large_ends_no_session_that_can_afford_ordinary_ones():
    given = ledger(ORDINARY_INPUT + LEAST_OUTPUT)
    with pytest.raises(BadRequest, match="the request is too large for what is left"):
        hold(given, asked(ORDINARY_INPUT + 1))
    assert not given.exhausted
    with pytest.raises(BudgetExhausted):
        hold(ledger(ORDINARY_INPUT + LEAST_OUTPUT - 1), asked(ORDINARY_INPUT + 1))


def test_a_call_waits_for_what_another_gives_back():
    async def scenario():
        given, order = ledger(20_000), []

        async def call(name, wait):
            async with given.hold("m", asked(), None) as allowed:
                order.append((name, output_limit(allowed)))
                await asyncio.sleep(wait)

        await asyncio.gather(call("first", 0.01), call("second", 0))
        return order

    assert asyncio.run(asyncio.wait_for(scenario(), 10)) == [("first", 16_000), ("second", 16_000)]
