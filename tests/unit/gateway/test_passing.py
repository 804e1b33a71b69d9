"""Requests and replies pass as the JSON they are, in the protocol that agent and provider share."""

import asyncio
import json

import pytest

from dgm.domain import Usage
from dgm.errors import Infrastructure
from dgm.gateway.lease import CallLimits
from dgm.gateway.server import LendingRules
from dgm.messages import RequestRefused, WireProtocol, WireReply
from tests.unit.gateway.wire_provider import (
    STREAM,
    Provider,
    completion,
    failing,
    lending,
    streamed,
    until,
    whole,
)
from tests.unit.gateway_bench import ACTION, MemoryJournal, chat, client

SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}, "strict": True}}


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 60))


def test_request_keeps_everything_that_it_holds(tmp_path):
    body = chat(response_format=SCHEMA, logprobs=True, top_logprobs=3, n=2, presence_penalty=0.5, top_k=7)

    async def scenario():
        provider = Provider()
        async with lending(tmp_path / "g", provider) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    answer = await http.post("/chat/completions", json=body)
        sent = provider.asked[0].body
        assert {**sent, "model": "default"} == {**body, "max_tokens": 16_000} | {
            key: sent[key] for key in ("max_completion_tokens",) if key in sent
        }
        assert answer.content == json.dumps(completion()).encode()

    run(scenario())


def test_first_token_arrives_while_the_provider_still_writes_and_the_end_only_when_it_is_recorded(tmp_path):
    class Held(MemoryJournal):
        def __init__(self):
            super().__init__()
            self.let = asyncio.Event()

        async def record(self, call, settles=()):
            await self.let.wait()
            await super().record(call, settles)

    async def scenario():
        gate, journal = asyncio.Event(), Held()
        async with lending(tmp_path / "g", Provider(streamed(gate)), journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with (
                    client(opened, lease.token) as http,
                    http.stream("POST", "/chat/completions", json=chat(stream=True)) as answer,
                ):
                    pieces = answer.aiter_raw()
                    assert await anext(pieces) == b"".join(STREAM[:2])
                    gate.set()
                    rest = asyncio.ensure_future(anext(pieces))
                    await asyncio.sleep(0.05)
                    assert not rest.done()
                    journal.let.set()
                    assert await rest == b"".join(STREAM[2:])
        assert [call.reply.content for call in journal.paid.values()] == [b"".join(STREAM)]

    run(scenario())


def test_repetition_gets_the_same_bytes_and_asks_nobody(tmp_path):
    async def scenario():
        journal, told = MemoryJournal(), []
        for provider in (Provider(streamed()), Provider(failing(AssertionError("asked again")))):
            async with lending(tmp_path / "g", provider, journal) as opened:
                with opened.lend(ACTION, "solve") as lease:
                    async with client(opened, lease.token) as http:
                        answer = await http.post("/chat/completions", json=chat(stream=True, temperature=0))
                        told.append(answer.content)
        assert told == [b"".join(STREAM)] * 2

    run(scenario())


def test_recorded_stream_is_told_whole_to_a_repetition_that_wants_no_stream(tmp_path):
    async def scenario():
        journal = MemoryJournal()
        for stream in (True, False):
            async with lending(tmp_path / "g", Provider(streamed()), journal) as opened:
                with opened.lend(ACTION, "solve") as lease:
                    async with client(opened, lease.token) as http:
                        answer = await http.post("/chat/completions", json=chat(stream=stream))
        assert answer.json()["choices"][0]["message"]["content"] == "hello"
        assert len(journal.paid) == 1

    run(scenario())


def test_call_is_in_the_journal_before_it_is_sent(tmp_path):
    async def scenario():
        journal = MemoryJournal()

        async def answer(request, delivery):
            assert [begun.request for begun in journal.begun] == [request]
            return await whole()(request, delivery)

        async with lending(tmp_path / "g", Provider(answer), journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    assert (await http.post("/chat/completions", json=chat())).status_code == 200
        most = journal.begun[0].most
        assert most.output_tokens == 16_000
        assert most.usd > 0.16

    run(scenario())


def test_call_that_fails_is_booked_at_what_its_tries_were_billed(tmp_path):
    async def answer(_request, delivery):
        delivery.take_back(Usage(0, 10, 3))
        raise Infrastructure("away")

    async def scenario():
        journal = MemoryJournal()
        async with lending(tmp_path / "g", Provider(answer), journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    assert (await http.post("/chat/completions", json=chat())).status_code == 503
        ((number, usage),) = journal.booked
        assert (number, usage.input_tokens, usage.output_tokens) == (1, 10, 3)
        assert usage.usd == pytest.approx(40e-6)

    run(scenario())


def test_agent_that_hangs_up_and_asks_the_same_joins_its_call(tmp_path):
    async def scenario():
        gate, journal = asyncio.Event(), MemoryJournal()
        provider = Provider(streamed(gate, passed=0))
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    first = asyncio.create_task(http.post("/chat/completions", json=chat()))
                    await until(lambda: provider.asked)
                    first.cancel()
                async with client(opened, lease.token) as http:
                    await until(lambda: not lease.open)
                    second = asyncio.create_task(http.post("/chat/completions", json=chat()))
                    await asyncio.sleep(0.05)
                    gate.set()
                    assert (await second).status_code == 200
        assert (len(provider.asked), len(journal.paid)) == (1, 1)

    run(scenario())


def test_action_that_is_performed_again_joins_the_call_that_is_under_way(tmp_path):
    async def scenario():
        gate, journal = asyncio.Event(), MemoryJournal()
        provider = Provider(streamed(gate, passed=0))
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                http = client(opened, lease.token)
                first = asyncio.create_task(http.post("/chat/completions", json=chat()))
                await until(lambda: provider.asked)
                first.cancel()
                await http.aclose()
                await until(lambda: not lease.open)
            with opened.lend(ACTION, "solve") as again:
                async with client(opened, again.token) as http:
                    second = asyncio.create_task(http.post("/chat/completions", json=chat()))
                    await asyncio.sleep(0.05)
                    gate.set()
                    assert (await second).status_code == 200
                assert (again.calls, again.usage.tokens) == (1, 15)
        assert (len(provider.asked), len(journal.paid)) == (1, 1)

    run(scenario())


def test_answer_that_came_after_its_agent_ended_serves_the_repetition_that_waits_for_it(tmp_path):
    async def scenario():
        gate, journal = asyncio.Event(), MemoryJournal()
        provider = Provider(streamed(gate, passed=0))
        async with lending(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                http = client(opened, lease.token)
                first = asyncio.create_task(http.post("/chat/completions", json=chat()))
                await until(lambda: provider.asked)
                first.cancel()
                await http.aclose()
            with opened.lend(ACTION, "solve") as again:
                gate.set()
                await until(lambda: journal.paid)
                async with client(opened, again.token) as http:
                    assert (await http.post("/chat/completions", json=chat())).status_code == 200
        assert len(provider.asked) == 1

    run(scenario())


def test_same_question_asked_twice_at_once_is_two_calls(tmp_path):
    async def scenario():
        gate = asyncio.Event()
        provider = Provider(streamed(gate, passed=0))
        async with lending(tmp_path / "g", provider) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    both = [
                        asyncio.create_task(http.post("/chat/completions", json=chat())) for _ in range(2)
                    ]
                    await until(lambda: len(provider.asked) == 2)
                    gate.set()
                    assert [answer.status_code for answer in await asyncio.gather(*both)] == [200, 200]

    run(scenario())


def test_stream_that_breaks_in_the_middle_is_broken_off_and_the_next_tries_answer_is_kept(tmp_path):
    async def answer(_request, delivery):
        delivery.pass_on(STREAM[0])
        await asyncio.sleep(0.05)
        delivery.take_back(Usage(0, 10, 1))
        await asyncio.sleep(0.05)
        return WireReply(WireProtocol.CHAT, b"".join(STREAM), True, Usage(1, 10, 5))

    async def scenario():
        import httpx2

        journal = MemoryJournal()
        async with lending(tmp_path / "g", Provider(answer), journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    with pytest.raises(httpx2.RemoteProtocolError):
                        await http.post("/chat/completions", json=chat(stream=True))
                    again = await http.post("/chat/completions", json=chat(stream=True))
                await lease.outlive(5.0)
                assert "broke off" in str(lease.failure)
        assert again.content == b"".join(STREAM)
        # What the broken try was billed is in the call's account.
        assert [call.reply.usage.input_tokens for call in journal.paid.values()] == [20]

    run(scenario())


def refused(*, own, kept=True, status=403):
    return RequestRefused(
        "content_filter", "blocked", own=own, kept=kept, status=status, content=b'{"error": "blocked"}'
    )


def test_providers_refusal_is_handed_on_as_it_is_and_heard_again(tmp_path):
    async def scenario():
        journal, provider = MemoryJournal(), Provider(failing(refused(own=False)))
        for _ in range(2):
            async with lending(tmp_path / "g", provider, journal) as opened:
                with opened.lend(ACTION, "solve") as lease:
                    async with client(opened, lease.token) as http:
                        answer = await http.post("/chat/completions", json=chat())
                assert (answer.status_code, answer.content) == (403, b'{"error": "blocked"}')
                assert "all 1 model calls were refused" in lease.blameless
        assert len(provider.asked) == 1

    run(scenario())


def test_refusal_that_a_person_may_mend_is_not_kept(tmp_path):
    async def scenario():
        journal, provider = MemoryJournal(), Provider(failing(refused(own=False, kept=False)), whole())
        for expected in (403, 200):
            async with lending(tmp_path / "g", provider, journal) as opened:
                with opened.lend(ACTION, "solve") as lease:
                    async with client(opened, lease.token) as http:
                        assert (await http.post("/chat/completions", json=chat())).status_code == expected
        assert journal.booked[0][1].tokens == 0

    run(scenario())


@pytest.mark.parametrize("answers", [(failing(refused(own=True)),), (failing(refused(own=False)), whole())])
def test_agent_that_was_answered_or_is_at_fault_itself_is_judged(tmp_path, answers):
    async def scenario():
        async with lending(tmp_path / "g", Provider(*answers)) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    for text in ("a", "b"):
                        await http.post("/chat/completions", json=chat(text))
                assert lease.blameless == ""

    run(scenario())


def test_time_in_a_queue_or_behind_a_failed_try_is_not_the_agents(tmp_path):
    async def answer(request, delivery):
        with delivery.waiting():
            await asyncio.sleep(0.3)
        await delivery.sending()
        await asyncio.sleep(0.3)
        return await whole()(request, delivery)

    async def scenario():
        async with lending(tmp_path / "g", Provider(answer)) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    both = [http.post("/chat/completions", json=chat(text)) for text in "ab"]
                    await asyncio.gather(*both)
                    told = (await http.get("/dgm/clock")).json()["lost_s"]
        # The two waited side by side: that time is counted once.
        assert 0.25 < told < 0.55

    run(scenario())


def test_previous_answer_of_the_job_is_put_in_place_of_its_id(tmp_path):
    def response(number):
        item = {
            "type": "message",
            "id": f"m{number}",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "ok", "annotations": []}],
        }
        return {
            "id": f"resp_{number}",
            "object": "response",
            "status": "completed",
            "output": [item],
            "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
        }

    async def scenario():
        def saying(number):
            async def answer(_request, _delivery):
                return WireReply(
                    WireProtocol.RESPONSES, json.dumps(response(number)).encode(), False, Usage(1, 1, 1)
                )

            return answer

        provider = Provider(saying(1), saying(2), protocol=WireProtocol.RESPONSES)
        async with lending(tmp_path / "g", provider) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    await http.post("/responses", json={"model": "default", "input": "first"})
                    more = {"model": "default", "input": "second", "previous_response_id": "resp_1"}
                    assert (await http.post("/responses", json=more)).status_code == 200
                    strange = {**more, "previous_response_id": "resp_9"}
                    assert (await http.post("/responses", json=strange)).status_code == 400
        sent = provider.asked[1].body
        assert "previous_response_id" not in sent
        assert [item.get("role") for item in sent["input"]] == ["user", "assistant", "user"]
        assert sent["store"] is False

    run(scenario())


@pytest.mark.parametrize("name", ["default", "own", "openai-compatible/own", "gpt-4o"])
def test_every_name_of_the_lent_model_is_taken(tmp_path, name):
    async def scenario():
        provider = Provider()
        async with lending(
            tmp_path / "g", provider, rules=LendingRules({"gpt-4o": "default", "other": "anthropic/x"})
        ) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    assert (await http.post("/chat/completions", json=chat(model=name))).status_code == 200
                    assert (await http.get(f"/models/{name}")).json()["id"] == name
                    assert (await http.get("/models/other")).status_code == 404
        assert provider.asked[0].body["model"] == "own"

    run(scenario())


@pytest.mark.parametrize("counted", [77, None])
def test_tokens_are_counted_by_the_provider_or_estimated_and_marked(tmp_path, counted):
    async def scenario():
        provider = Provider(protocol=WireProtocol.MESSAGES)
        provider.counted = counted
        async with lending(tmp_path / "g", provider) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    body = {"model": "default", "messages": [{"role": "user", "content": "x" * 400}]}
                    answer = await http.post("/messages/count_tokens", json=body)
        assert (answer.json()["input_tokens"] == 77) is (counted == 77)
        assert ("x-dgm-estimated" in answer.headers) is (counted is None)

    run(scenario())


def test_what_a_translation_cannot_carry_is_refused_and_is_not_the_agents_fault(tmp_path):
    async def scenario():
        async with lending(tmp_path / "g", Provider(protocol=WireProtocol.MESSAGES)) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    answer = await http.post("/chat/completions", json=chat(response_format=SCHEMA))
                assert answer.status_code == 400
                assert "response_format" in answer.json()["error"]["message"]
                assert lease.blameless

    run(scenario())


def test_output_is_limited_to_the_lease_under_the_name_that_the_agent_uses(tmp_path):
    async def scenario():
        provider = Provider()
        async with lending(tmp_path / "g", provider, limits=CallLimits(output_tokens=100)) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    await http.post("/chat/completions", json=chat(max_completion_tokens=1_000))
                    await http.post("/chat/completions", json=chat(max_tokens=7))
        sent = [request.body for request in provider.asked]
        assert (sent[0]["max_completion_tokens"], sent[1]["max_tokens"]) == (100, 7)

    run(scenario())


def test_several_answers_of_one_request_are_held_at_their_price(tmp_path):
    async def scenario():
        journal = MemoryJournal()
        async with lending(tmp_path / "g", Provider(), journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    await http.post("/chat/completions", json=chat(n=4, max_tokens=1_000))
        assert journal.begun[0].most.output_tokens == 4_000

    run(scenario())
