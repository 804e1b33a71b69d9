"""Recorded calls: a replay has nothing else, and names the place where one is missing; each is heard by one job."""

import asyncio

import pytest

from dgm.messages import Reply, RequestRefused
from dgm.models.builtin import RecordedModel
from tests.support.gateway.bench import ACTION, MemoryJournal, Script, ask, client, gateway, talking

pytestmark = pytest.mark.slow


async def test_recording_answers_and_says_what_it_lacks(tmp_path):
    journal = MemoryJournal()
    journal.already(Reply("as recorded"))
    async with talking(gateway(tmp_path / "g", RecordedModel("scripted"), journal)) as (_, lease, http):
        first, second = await ask(http), await ask(http)
    assert first[1]["choices"][0]["message"]["content"] == "as recorded"
    assert second[0] == 503
    assert str(lease.failure).startswith("action 7, call 2: the recording has no reply to this call")


@pytest.mark.parametrize("earlier", [False, True], ids=["first performance", "repeated"])
def test_refusal_is_heard_by_one_job_and_not_laid_before_the_next(tmp_path, caplog, earlier):
    """An editor whose conversation became too long, then a probe of its child: the probe is not compared with it."""

    async def scenario():
        journal, heard = MemoryJournal(), set()
        refusal = RequestRefused("context_length_exceeded", "long")
        model = Script(*([] if earlier else [refusal]), Reply("fine"))
        if earlier:
            journal.already(Reply(str(refusal), error=refusal.code))
        async with gateway(tmp_path / "g", model, journal) as opened:
            statuses = []
            for text in ("hi", "something else"):
                with opened.lend(ACTION, "improve", heard=heard) as lease:
                    async with client(opened, lease.token) as http:
                        statuses.append((await ask(http, messages=[{"role": "user", "content": text}]))[0])
        assert statuses == [400, 200]
        assert heard == {1, 2}
        assert len(model.asked) == (1 if earlier else 2)

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert "is not the recorded one" not in caplog.text
