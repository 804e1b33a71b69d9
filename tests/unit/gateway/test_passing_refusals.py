"""What an agent hears of a provider's refusals and failures, and what they are booked at."""

import pytest

from dgm.domain import Usage
from dgm.errors import Infrastructure
from dgm.messages import RequestRefused, WireProtocol
from tests.support.gateway.bench import ACTION, MemoryJournal, chat, client, gateway, talking
from tests.support.gateway.wire_provider import Provider, failing, whole

pytestmark = pytest.mark.slow

SCHEMA = {"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}, "strict": True}}


async def test_call_that_fails_is_booked_at_what_its_tries_were_billed(tmp_path):
    async def answer(_request, delivery):
        delivery.take_back(Usage(0, 10, 3))
        raise Infrastructure("away")

    journal = MemoryJournal()
    async with talking(gateway(tmp_path / "g", Provider(answer), journal)) as (_, _, http):
        assert (await http.post("/chat/completions", json=chat())).status_code == 503
    (number, usage), _neutral_question = journal.booked
    assert (number, usage.input_tokens, usage.output_tokens) == (1, 10, 3)
    assert usage.usd == pytest.approx(40e-6)


def refused(*, own, kept=True, status=403):
    return RequestRefused(
        "content_filter", "blocked", own=own, kept=kept, status=status, content=b'{"error": "blocked"}'
    )


async def test_providers_refusal_is_handed_on_as_it_is_and_heard_again(tmp_path):
    journal, provider = MemoryJournal(), Provider(failing(refused(own=False)))
    for _ in range(2):
        async with gateway(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    answer = await http.post("/chat/completions", json=chat())
            assert (answer.status_code, answer.content) == (403, b'{"error": "blocked"}')
            assert "all 1 model calls were refused" in lease.blameless
    assert len(provider.asked) == 1


async def test_refusal_that_a_person_may_mend_is_not_kept(tmp_path):
    journal, provider = MemoryJournal(), Provider(failing(refused(own=False, kept=False)), whole())
    for expected in (403, 200):
        async with talking(gateway(tmp_path / "g", provider, journal)) as (_, _, http):
            assert (await http.post("/chat/completions", json=chat())).status_code == expected
    assert journal.booked[0][1].tokens == 0


async def test_what_a_translation_cannot_carry_is_refused_and_is_not_the_agents_fault(tmp_path):
    async with gateway(tmp_path / "g", Provider(protocol=WireProtocol.MESSAGES)) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                answer = await http.post("/chat/completions", json=chat(response_format=SCHEMA))
            assert answer.status_code == 400
            assert "response_format" in answer.json()["error"]["message"]
            assert lease.blameless
