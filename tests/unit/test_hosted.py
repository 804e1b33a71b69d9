"""A hosted model asks patiently, in turn, and says plainly what came of it."""

import asyncio
import json
import subprocess
import sys
from dataclasses import replace
from random import Random

import httpx2
import pytest

from dgm.config import ProviderSettings
from dgm.domain import Usage
from dgm.errors import Infrastructure, ProviderRefuses, UserError
from dgm.messages import Message, Reply, Request, RequestRefused, Role, Tool, ToolCall
from dgm.models.anthropic_messages import MessagesDialect, open_client
from dgm.models.dialect import Broken
from dgm.models.hosted import HostedModel, Retries, estimated_tokens
from dgm.models.throttle import Throttle
from tests.unit import virtual_time
from tests.unit.virtual_time import clock

KEY = "k3y-0123456789-abcdefghij-ZZ"
NAME = "anthropic/claude-sonnet-5"
ASKED = Request([Message(Role.USER, "Hi")], model=NAME, max_output_tokens=64)
MESSAGE = {
    "type": "message",
    "content": [{"type": "text", "text": "Here."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 2},
}


def answer(status, kind="api_error", message="So.", **headers):
    body = {"type": "error", "error": {"type": kind, "message": message}}
    return httpx2.Response(status, json=body, headers=headers)


def well():
    return httpx2.Response(200, json=MESSAGE)


class Bench:
    """A model whose provider answers by script, and how long it was waited before each try."""

    def __init__(self, *script, stream=False, **limits):
        self.settings = ProviderSettings(**{"concurrency": 4, **limits})
        self.left = list(script)
        self.at = []
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self.respond))
        dialect = MessagesDialect(open_client(self.settings, KEY, http), "claude-sonnet-5", stream)
        self.throttle = Throttle("anthropic", self.settings, asyncio.sleep, clock)
        retries = Retries(self.settings.tries, self.settings.backoff_s, asyncio.sleep, clock, Random(1))
        self.model = HostedModel(NAME, dialect, self.throttle, retries, "ANTHROPIC_API_KEY", [KEY])

    async def respond(self, _):
        self.at.append(clock())
        step = self.left.pop(0) if self.left else well()
        if isinstance(step, Exception):
            raise step
        return step

    @property
    def gaps(self):
        return [after - before for before, after in zip(self.at, self.at[1:], strict=False)]

    def ask(self, request=ASKED):
        return virtual_time.run(self.model.reply(request))

    def check(self):
        return virtual_time.run(self.model.check())


TRANSIENT = {
    "408": lambda: answer(408),
    "409": lambda: answer(409),
    "429": lambda: answer(429, "rate_limit_error"),
    "500": lambda: answer(500),
    "529": lambda: answer(529, "overloaded_error"),
    "page": lambda: httpx2.Response(200, html="<h1>Hotel</h1>"),
    "cut": lambda: httpx2.Response(
        200, content=b'{"type": "mess', headers={"content-type": "application/json"}
    ),
    "nothing": lambda: httpx2.Response(200),
    "timeout": lambda: httpx2.ReadTimeout("no byte"),
    "reset": lambda: httpx2.ReadError("reset"),
    "refused": lambda: httpx2.ConnectError("refused"),
}


@pytest.mark.parametrize("fault", TRANSIENT.values(), ids=TRANSIENT)
def test_what_may_pass_is_tried_again_unnoticed(fault):
    bench = Bench(fault(), fault())
    reply = bench.ask()
    assert (reply.text, reply.usage) == ("Here.", Usage(calls=1, input_tokens=3, output_tokens=2))
    assert len(bench.at) == 3


def test_waits_double_up_to_a_minute_with_jitter():
    bench = Bench(*(answer(500) for _ in range(11)), tries=12)
    bench.ask()
    longest = [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]
    assert all(most / 2 <= gap <= most for gap, most in zip(bench.gaps, longest, strict=True))
    assert len(set(bench.gaps)) == len(bench.gaps)


def test_the_providers_wish_wins_over_the_own_wait():
    bench = Bench(answer(429, **{"retry-after": "7"}), answer(503, **{"retry-after-ms": "250"}))
    bench.ask()
    assert bench.gaps == pytest.approx([7, 0.25])


def test_a_wish_of_one_call_holds_all():
    bench = Bench(answer(429, **{"retry-after": "40"}), concurrency=1)

    async def scenario():
        await asyncio.gather(*(bench.model.reply(ASKED) for _ in range(3)))

    virtual_time.run(scenario())
    assert bench.gaps == pytest.approx([40, 0, 0])


def test_overload_lowers_the_number_of_calls_at_once():
    bench = Bench(answer(529, "overloaded_error"), answer(500), concurrency=8)
    bench.ask()
    assert bench.throttle.allowed == 4


def test_after_the_last_try_it_says_what_was_tried():
    bench = Bench(
        *(answer(429, "rate_limit_error", f"Slow {KEY}", **{"retry-after": "31"}) for _ in range(9)), tries=4
    )
    with pytest.raises(Infrastructure) as caught:
        bench.ask()
    assert str(caught.value) == f"{NAME}: 4 tries in 93 s, the last: 429 Slow ***"
    assert not isinstance(caught.value, ProviderRefuses)
    assert len(bench.at) == 4


def test_one_try_is_one():
    bench = Bench(answer(500), tries=1)
    with pytest.raises(Infrastructure, match="1 try: 500 So"):
        bench.ask()


def test_a_refused_request_is_told_at_once():
    bench = Bench(answer(400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum"))
    with pytest.raises(RequestRefused, match="prompt is too long") as caught:
        bench.ask()
    assert caught.value.code == "context_length_exceeded"
    assert len(bench.at) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            answer(401, "authentication_error", "invalid"),
            "the key in ANTHROPIC_API_KEY is refused: 401 invalid",
        ),
        (answer(404, "not_found_error", "model: x"), "404 model: x"),
        (
            answer(400, "invalid_request_error", "Your credit balance is too low"),
            "400 Your credit balance is too low",
        ),
    ],
)
def test_what_a_person_has_to_mend_is_told_at_once(given, words):
    bench = Bench(given)
    with pytest.raises(ProviderRefuses) as caught:
        bench.ask()
    assert str(caught.value).startswith(f"{NAME}: {words}")
    assert len(bench.at) == 1


def empty():
    return httpx2.Response(200, json={**MESSAGE, "content": []})


def test_an_empty_answer_is_asked_for_again():
    bench = Bench(empty(), empty())
    assert bench.ask().text == "Here."


def test_answers_that_were_thrown_away_are_paid_for():
    thrown = Reply("", usage=Usage(1, 100, 7))
    one = model(Silent(Broken("empty", thrown), Reply("here", usage=Usage(1, 100, 20))))
    assert virtual_time.run(one.reply(replace(ASKED, max_output_tokens=500))).usage == Usage(1, 200, 27)


def test_answers_that_were_thrown_away_cost_no_more_than_was_set_aside():
    dialect = Silent(*(Broken("empty", Reply("", usage=Usage(1, 100, 7))) for _ in range(3)))
    reply = virtual_time.run(model(dialect).reply(replace(ASKED, max_output_tokens=400)))
    # One answer could take 100 of input and 400 of output: the third would leave less than half of that.
    assert dialect.asked == [400, 293]
    assert reply.usage == Usage(1, 200, 14)


def test_the_time_that_failed_tries_took_is_told():
    assert Bench().ask().lost_s == 0.0
    bench = Bench(*(answer(503) for _ in range(2)))
    assert bench.ask().lost_s == sum(bench.gaps) > 1.0


def test_an_answer_that_stays_empty_is_meant():
    bench = Bench(*(empty() for _ in range(9)))
    reply = bench.ask()
    assert (reply.text, reply.calls, len(bench.at)) == ("", (), 3)


def test_a_streamed_answer_that_is_cut_is_asked_for_again():
    start = {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}}
    events = [
        start,
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Here."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]

    def told(some):
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in some)
        return httpx2.Response(200, content=text, headers={"content-type": "text/event-stream"})

    bench = Bench(told(events[:3]), told(events[:4]), told(events), stream=True)
    assert bench.ask().text == "Here."
    assert len(bench.at) == 3


class Silent:
    """A dialect that gives what it was made with."""

    vendor = "test"

    def __init__(self, *steps):
        self.steps = list(steps)
        self.asked = []
        self.closed = False

    async def ask(self, request):
        if request is not None:
            self.asked.append(request.max_output_tokens)
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    async def check(self):
        await self.ask(None)

    async def close(self):
        self.closed = True


def model(dialect, **limits):
    throttle = Throttle("test", ProviderSettings(**limits), asyncio.sleep, clock)
    return HostedModel(
        "test/m", dialect, throttle, Retries(limits.get("tries", 3), 1.0, asyncio.sleep, clock, Random(1))
    )


def test_a_mistake_of_ours_is_not_retried():
    dialect = Silent(TypeError("a mistake"), Reply("never"))
    with pytest.raises(TypeError, match="a mistake") as caught:
        virtual_time.run(model(dialect).reply(ASKED))
    assert caught.value.__cause__ is None and len(dialect.steps) == 1


def test_no_number_of_tries_is_too_many_to_compute_a_wait():
    one = model(Silent(*(Broken("cut") for _ in range(1100)), Reply("at last")), tries=2000)
    assert virtual_time.run(one.reply(ASKED)).text == "at last"


def test_no_place_is_held_while_waiting_for_the_next_try():
    dialect = Silent(Broken("cut"), Reply("b"), Reply("a"))

    async def scenario():
        one = model(dialect, concurrency=1)
        return [reply.text for reply in await asyncio.gather(one.reply(ASKED), one.reply(ASKED))]

    assert virtual_time.run(scenario()) == ["a", "b"]


def test_tokens_are_estimated_before_and_corrected_after():
    small = Reply("x", usage=Usage(1, 50, 10))

    async def scenario():
        one = model(Silent(small, small, small, RequestRefused("x", "y"), small), tokens_per_minute=1200)
        begun = clock()
        for _ in range(3):
            await one.reply(Request([Message(Role.USER, "x")], max_output_tokens=1000))
        with pytest.raises(RequestRefused):
            await one.reply(Request([Message(Role.USER, "x")], max_output_tokens=1000))
        await one.reply(Request([Message(Role.USER, "x")], max_output_tokens=1000))
        return clock() - begun

    # Four replies of 60 tokens would not fit beside the estimate of a fifth, three do; a refused one takes nothing.
    assert virtual_time.run(scenario()) == 0


def test_all_that_is_sent_is_estimated():
    call = Message(Role.ASSISTANT, "t" * 400, (ToolCall("i", "n" * 40, "a" * 400),))
    full = Request([call], [Tool("n" * 40, "d" * 400, {"p": "q" * 400})], max_output_tokens=1000)
    assert 1000 + 420 <= estimated_tokens(full) <= 1000 + 420 + 40


def test_a_cancelled_call_leaves_its_place():
    class Hanging(Silent):
        async def ask(self, request):
            if self.steps.pop(0) == "hang":
                await asyncio.sleep(1e9)
            return Reply("next")

    async def scenario():
        one = model(Hanging("hang", "go"), concurrency=1)
        hanging = asyncio.create_task(one.reply(ASKED))
        await asyncio.sleep(1)
        hanging.cancel()
        await asyncio.gather(hanging, return_exceptions=True)
        return await one.reply(ASKED)

    assert virtual_time.run(scenario()).text == "next"


def test_closing_closes_the_dialect():
    dialect = Silent()
    asyncio.run(model(dialect).close())
    assert dialect.closed


# Checks


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_named_by_its_variable(status):
    bench = Bench(answer(status, "authentication_error", "invalid x-api-key"))
    with pytest.raises(UserError, match=r"the key in ANTHROPIC_API_KEY is refused: 40\d invalid x-api-key"):
        bench.check()


def test_an_unknown_model_is_the_users_error():
    offered = httpx2.Response(200, json={"data": [{"id": "claude-sonnet-5-5"}]})
    with pytest.raises(UserError, match="it offers: claude-sonnet-5-5"):
        Bench(answer(404, "not_found_error"), offered).check()


def test_an_address_with_nothing_behind_it_is_the_users_error():
    with pytest.raises(UserError, match="404"):
        Bench(answer(404), answer(404)).check()


def test_a_provider_that_is_away_is_asked_a_few_times():
    bench = Bench(*(httpx2.ConnectError("refused") for _ in range(9)))
    with pytest.raises(Infrastructure, match=r"3 tries in .* the last: connect error: refused"):
        bench.check()
    assert len(bench.at) == 3


def test_a_check_does_not_wait_in_the_queue():
    bench = Bench(httpx2.Response(200, json={"type": "model", "id": "claude-sonnet-5"}))

    async def scenario():
        bench.throttle.pause(1000)
        begun = clock()
        await bench.model.check()
        return clock() - begun

    assert virtual_time.run(scenario()) == 0


def test_no_vendors_package_is_imported_before_it_is_needed():
    program = (
        "import sys, dgm.models.hosted, dgm.models.throttle, dgm.models.keys, dgm.models.anthropic_messages\n"
        "print([name for name in ('openai', 'anthropic', 'httpx2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
