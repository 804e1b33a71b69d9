"""Requests and replies pass as the JSON they are, in the protocol that agent and provider share."""

import asyncio
import json

import pytest

from dgm.domain import Usage
from dgm.gateway.lease import CallLimits
from dgm.messages import WireProtocol, WireReply
from tests.support.gateway.bench import ACTION, MemoryJournal, chat, client, gateway, talking
from tests.support.gateway.wire_provider import Provider, whole

pytestmark = pytest.mark.slow


async def test_call_is_in_the_journal_before_it_is_sent(tmp_path):
    journal = MemoryJournal()

    async def answer(request, delivery):
        assert [begun.request for begun in journal.begun] == [request]
        return await whole()(request, delivery)

    async with talking(gateway(tmp_path / "g", Provider(answer), journal)) as (_, _, http):
        assert (await http.post("/chat/completions", json=chat())).status_code == 200
    most = journal.begun[0].most
    assert most.output_tokens == 16_000
    assert most.usd > 0.16


async def test_time_in_a_queue_or_behind_a_failed_try_is_not_the_agents(tmp_path):
    async def answer(request, delivery):
        with delivery.waiting():
            await asyncio.sleep(0.3)
        await delivery.begin()
        delivery.sending()
        await asyncio.sleep(0.3)
        return await whole()(request, delivery)

    async with talking(gateway(tmp_path / "g", Provider(answer))) as (_, _, http):
        both = [http.post("/chat/completions", json=chat(text)) for text in "ab"]
        await asyncio.gather(*both)
        told = (await http.get("/dgm/clock")).json()["lost_s"]
    # The two waited side by side: that time is counted once.
    assert 0.25 < told < 0.55


async def test_previous_answer_of_the_job_is_put_in_place_of_its_id(tmp_path):
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

    def saying(number):
        async def answer(_request, _delivery):
            return WireReply(
                WireProtocol.RESPONSES, json.dumps(response(number)).encode(), False, Usage(1, 1, 1)
            )

        return answer

    provider = Provider(saying(1), saying(2), protocol=WireProtocol.RESPONSES)
    async with talking(gateway(tmp_path / "g", provider)) as (_, _, http):
        await http.post("/responses", json={"model": "default", "input": "first"})
        more = {"model": "default", "input": "second", "previous_response_id": "resp_1"}
        assert (await http.post("/responses", json=more)).status_code == 200
        strange = {**more, "previous_response_id": "resp_9"}
        assert (await http.post("/responses", json=strange)).status_code == 400
    sent = provider.asked[1].body
    assert "previous_response_id" not in sent
    assert [item.get("role") for item in sent["input"]] == ["user", "assistant", "user"]
    assert sent["store"] is False


async def test_several_answers_of_one_request_are_held_at_their_price(tmp_path):
    journal = MemoryJournal()
    async with talking(gateway(tmp_path / "g", Provider(), journal)) as (_, _, http):
        await http.post("/chat/completions", json=chat(n=4, max_tokens=1_000))
    assert journal.begun[0].most.output_tokens == 4_000


async def test_calls_that_wait_for_others_of_their_own_job_give_it_no_more_time(tmp_path):
    async def answer(request, delivery):
        await asyncio.sleep(0.2)
        return await whole()(request, delivery)

    async with gateway(tmp_path / "g", Provider(answer), limits=CallLimits(concurrent=1)) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                calls = [http.post("/chat/completions", json=chat(text)) for text in "abc"]
                await asyncio.gather(*calls)
            assert lease.lost_s < 0.1


async def test_tokens_are_estimated_without_a_call_and_lent_models_described(tmp_path):
    provider = Provider(protocol=WireProtocol.MESSAGES)
    async with talking(gateway(tmp_path / "g", provider)) as (_, _, http):
        body = {"model": "default", "messages": [{"role": "user", "content": "x" * 400}]}
        answer = await http.post("/messages/count_tokens", json=body)
        described = await http.get("/models/own")
        unknown = await http.get("/models/other")
    assert 100 < answer.json()["input_tokens"] < 140
    assert answer.headers["x-dgm-estimated"] == "true"
    assert provider.asked == []
    assert (described.json()["id"], unknown.status_code) == ("own", 404)
