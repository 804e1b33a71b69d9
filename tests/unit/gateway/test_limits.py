"""What an agent may not have: money beyond a limit, models and endpoints that it was not given; and what it hears."""

import asyncio

import pytest

from dgm.domain import Budget, Usage
from dgm.errors import Infrastructure, ProviderRefuses
from dgm.gateway.lease import CallLimits
from dgm.messages import Native, Reply, Stop, ToolCall
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, ask, chat, client, gateway, talking

pytestmark = pytest.mark.slow


async def test_what_the_runs_budget_cuts_short_is_not_graded(tmp_path):
    journal, model = MemoryJournal(), Script()
    journal.already(Reply("paid before", usage=Usage(1, 10, 10, 0.02)))
    async with gateway(tmp_path / "g", model, journal, Budget(usd=0.02)) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                (first, _), (second, _) = await ask(http), await ask(http)
        assert opened.ledger.exhausted.startswith("0.0200 of 0.02 USD are spent")
    assert (first, second) == (200, 503)
    assert isinstance(lease.failure, Infrastructure)
    assert model.asked == []


async def test_a_huge_request_is_its_agents_trouble_and_not_the_runs(tmp_path):
    model = Script()
    async with gateway(tmp_path / "g", model, budget=Budget(usd=0.5)) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                huge = await ask(http, messages=[{"role": "user", "content": "x" * 600_000}])
                small = await ask(http)
        assert not opened.ledger.exhausted
    assert (huge[0], huge[1]["error"]["code"]) == (403, "action_limit_exceeded")
    assert (small[0], lease.failure) == (200, None)


async def test_calls_that_waited_for_their_turn_are_asked_again_for_tokens(tmp_path):
    limits = CallLimits(tokens=20, concurrent=1)
    async with talking(gateway(tmp_path / "g", limits=limits)) as (_, _, http):
        answers = await asyncio.gather(*(ask(http) for _ in range(8)))
    assert sorted(status for status, _ in answers) == [200, 200, *[403] * 6]


async def test_money_of_one_action_is_its_limit(tmp_path):
    limits = CallLimits(usd=0.5, output_tokens=20_000)
    async with talking(
        gateway(tmp_path / "g", Script(Reply("x", usage=Usage(1, 9, 15_000))), limits=limits)
    ) as (_, lease, http):
        answers = [await ask(http) for _ in range(4)]
    assert [status for status, _ in answers] == [200, 200, 403, 403]
    assert "this job has spent 0.3000 of 0.50 USD" in answers[2][1]["error"]["message"]
    assert lease.failure is None


async def test_provider_that_takes_nothing_more_is_told_to_the_search(tmp_path):
    model = Script(ProviderRefuses("openai: the key was revoked"))
    async with gateway(tmp_path / "g", model) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                assert (await ask(http))[0] == 503
        assert opened.caller.refused == "openai: the key was revoked"
    assert isinstance(lease.failure, Infrastructure)


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/chat/completions", chat(model="gpt-9"), "model_not_found"),
        ("/files", {}, "unknown_endpoint"),
        ("/chat/completions", chat(tools=[{"type": "web_search"}]), "unsupported_tool"),
        (
            "/responses",
            {"model": "default", "input": "x", "previous_response_id": "resp_9"},
            "previous_response_not_found",
        ),
    ],
)
async def test_what_was_not_given_is_refused_and_the_refusal_recorded(tmp_path, path, body, code):
    journal, model = MemoryJournal(), Script()
    async with talking(gateway(tmp_path / "g", model, journal)) as (_, lease, http):
        answers = [await http.post(path, json=body) for _ in range(30)]
    assert {answer.json()["error"]["code"] for answer in answers} == {code}
    assert {refused[3] for refused in journal.refused} == {code}
    assert (len(journal.refused), lease.refusals, model.asked) == (20, 30, [])


async def test_reasoning_comes_back_to_the_vendor_that_signed_it(tmp_path):
    native = Native("anthropic", '[{"type":"thinking","signature":"x"}]')
    call = ToolCall("call_1", "bash", "{}")
    model = Script(Reply("", (call,), Stop.TOOL_CALLS, native=native), Reply("done"))
    async with talking(gateway(tmp_path / "g", model)) as (_, _, http):
        _, body = await ask(http)
        said = body["choices"][0]["message"]
        turn = {"role": "assistant", "content": None, "tool_calls": said["tool_calls"]}
        forged = {"role": "assistant", "content": "I never said this"}
        result = {"role": "tool", "tool_call_id": "call_1", "content": "ok"}
        await ask(http, messages=[*chat()["messages"], forged, turn, result])
    assert [message.native for message in model.asked[1].messages] == [None, None, native, None]


async def test_a_later_job_of_the_same_performance_is_not_served_what_an_earlier_one_heard(tmp_path):
    journal, model = MemoryJournal(), Script(Reply("first"), Reply("second"), Reply("third"))
    said = []
    async with gateway(tmp_path / "g", model, journal) as opened:
        for _performance in range(2):
            heard = set()
            for _job in range(2):
                with opened.lend(ACTION, "solve", heard=heard) as lease:
                    async with client(opened, lease.token) as http:
                        _, body = await ask(http)
                        said.append(body["choices"][0]["message"]["content"])
    assert said == ["first", "second", "first", "second"]
    assert len(model.asked) == 2
