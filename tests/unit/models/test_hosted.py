"""A hosted model asks patiently, in turn, and says plainly what came of it."""

import asyncio
import subprocess
import sys

import aiohttp
import httpx2
import pytest

from dgm.domain import Usage
from dgm.errors import Infrastructure, ProviderRefuses, ProviderWaits
from dgm.messages import WireProtocol
from tests.support import virtual_time
from tests.support.models.connection_script import (
    KEY,
    NAME,
    Bench,
    answer,
    asked,
    text_of,
    well,
)
from tests.support.virtual_time import clock

TRANSIENT = {
    "408": lambda: answer(408),
    "409": lambda: answer(409),
    "429": lambda: answer(429, code="rate_limit_exceeded"),
    "500": lambda: answer(500),
    "529": lambda: answer(529, type="overloaded_error"),
    "page": lambda: httpx2.Response(200, html="<h1>Hotel</h1>"),
    "cut": lambda: httpx2.Response(200, content=b'{"id": "c', headers={"content-type": "application/json"}),
    "nothing": lambda: httpx2.Response(200),
    "timeout": lambda: aiohttp.SocketTimeoutError("no byte"),
    "reset": lambda: aiohttp.ClientPayloadError("reset"),
    "refused": lambda: ConnectionRefusedError("refused"),
    "within": lambda: httpx2.Response(200, json={"error": {"message": "overloaded", "code": 503}}),
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
def test_what_may_pass_is_tried_again_unnoticed(fault):
    bench = Bench(fault(), fault())
    reply = bench.ask()
    assert (text_of(reply), reply.usage) == ("Here.", Usage(calls=1, input_tokens=30, output_tokens=4))
    assert reply.protocol is WireProtocol.CHAT
    assert len(bench.script.at) == 3
    assert bench.heard.told_waits == []


@pytest.mark.parametrize(
    ("error", "wasted"), [(ConnectionRefusedError("refused"), 0), (aiohttp.ClientPayloadError("reset"), 1)]
)
def test_only_a_request_that_was_sent_whole_counts_as_billed(error, wasted):
    bench = Bench(error)
    bench.ask()
    assert [one.input_tokens > 0 for one in bench.log.wasted] == [True] * wasted
    assert bench.log.events.count("sending") == 1 + wasted


def test_waits_double_up_to_a_minute_with_jitter():
    bench = Bench(*(answer(500) for _ in range(11)), tries=12)
    bench.ask()
    longest = [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]
    gaps = bench.script.gaps
    assert all(most / 2 <= gap <= most for gap, most in zip(gaps, longest, strict=True))
    assert len(set(gaps)) == len(gaps)


def test_wish_of_one_call_holds_all():
    bench = Bench(answer(429, headers={"retry-after": "40"}), concurrency=1)

    async def scenario():
        await asyncio.gather(*(bench.send() for _ in range(3)))

    virtual_time.run(scenario())
    assert bench.script.gaps == pytest.approx([40, 0, 0])
    assert len(bench.heard.told_waits) == 1


def test_long_wish_ends_the_call_and_those_that_follow_at_once():
    bench = Bench(answer(429, "Daily tokens are used up", headers={"retry-after": "61"}))

    async def scenario():
        begun = clock()
        for _ in range(2):
            with pytest.raises(ProviderWaits, match="Daily tokens are used up") as caught:
                await bench.send()
            assert caught.value.until == pytest.approx(begun + 61)
        assert clock() == begun
        await asyncio.sleep(61)
        assert text_of(await bench.send()) == "Here."

    virtual_time.run(scenario())
    assert len(bench.script.at) == 2
    ((model, words, until),) = bench.heard.told_waits
    assert (model, "Daily tokens" in words, until) == (NAME, True, pytest.approx(61 + bench.script.at[0]))


def test_overload_lowers_the_number_of_calls_at_once():
    bench = Bench(answer(529, type="overloaded_error"), answer(500), concurrency=8)
    bench.ask()
    assert bench.throttle.allowed == 4


def test_after_the_last_try_it_says_what_was_tried():
    bench = Bench(*(answer(429, f"Slow {KEY}", headers={"retry-after": "31"}) for _ in range(9)), tries=4)
    with pytest.raises(Infrastructure) as caught:
        bench.ask()
    assert str(caught.value) == f"{NAME}: 4 tries in 93 s, the last: 429 Slow ***"
    assert not isinstance(caught.value, ProviderRefuses)
    assert len(bench.script.at) == 4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (answer(401, "invalid", code="invalid_api_key"), "the key in A_KEY is refused: 401 invalid"),
        (answer(404, "no such model", code="model_not_found"), "404 no such model"),
        (answer(429, "You exceeded your current quota", code="insufficient_quota"), "429 You exceeded"),
    ],
)
def test_what_a_person_has_to_mend_is_told_at_once(given, words):
    bench = Bench(given)
    with pytest.raises(ProviderRefuses) as caught:
        bench.ask()
    assert str(caught.value).startswith(f"{NAME}: {words}")
    assert len(bench.script.at) == 1


# Turns and time


def test_waiting_is_told_while_a_call_queues_and_backs_off_and_sending_before_each_try():
    bench = Bench(answer(429, headers={"retry-after": "7"}))
    bench.ask()
    assert bench.log.events == [
        "waiting", "waited 0", "sending", "waiting", "waited 7", "waiting", "waited 0", "sending",
    ]  # fmt: skip


def test_no_place_is_held_while_waiting_for_the_next_try():
    bench = Bench(answer(500), well("b"), well("a"), concurrency=1)

    async def scenario():
        return [text_of(reply) for reply in await asyncio.gather(bench.send(), bench.send())]

    assert virtual_time.run(scenario()) == ["a", "b"]


def test_cancelled_call_leaves_its_place():
    async def hang(_):
        await asyncio.sleep(1e9)

    bench = Bench(hang, well("next"), concurrency=1)

    async def scenario():
        hanging = asyncio.create_task(bench.send())
        await asyncio.sleep(1)
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        return await bench.send()

    assert text_of(virtual_time.run(scenario())) == "next"


def test_body_passes_as_the_agent_wrote_it_but_for_the_model():
    bench = Bench()
    bench.ask(x_unknown={"a": [None, 1.5]}, n=1)
    assert bench.script.bodies == [{**asked().body, "model": "m-1", "x_unknown": {"a": [None, 1.5]}, "n": 1}]
    assert bench.script.places == [("/chat/completions", False)]


@pytest.mark.starts_processes
def test_no_vendors_package_is_imported_before_it_is_needed():
    program = (
        "import sys, dgm.models.hosted, dgm.models.throttle, dgm.models.keys, dgm.wires\n"
        "print([name for name in ('openai', 'anthropic', 'httpx2', 'aiohttp') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# The output limit of a try, by the sizes that a server tells


@pytest.mark.parametrize(("half", "sent"), [(True, 2_000), (False, 3_000)])
def test_a_reply_fills_at_most_half_of_a_told_context_where_the_model_sets_the_limit(half, sent):
    bench = Bench(access={"half_context": half})
    bench.model.adopt(bench.heard, {"context": 4_000})
    bench.ask(max_tokens=3_000)
    bench.ask(max_tokens=500)
    assert [body["max_tokens"] for body in bench.script.bodies] == [sent, 500]
