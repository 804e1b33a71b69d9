"""A replay: everything comes from the journal, and what is not there ends the replay with its place."""

import asyncio

import pytest

from dgm.errors import UserError
from dgm.messages import Reply
from dgm.models.choose import open_model
from dgm.models.recorded import RecordedModel
from tests.unit.gateway_bench import ACTION, MemoryJournal, ask, client, gateway


def test_recording_answers_and_says_what_it_lacks(tmp_path):
    async def scenario():
        journal = MemoryJournal()
        journal.already(Reply("as recorded"))
        async with gateway(tmp_path / "g", RecordedModel("scripted"), journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with client(opened, lease.token) as http:
                    first, second = await ask(http), await ask(http)
        assert first[1]["choices"][0]["message"]["content"] == "as recorded"
        assert second[0] == 503
        assert str(lease.failure).startswith("action 7, call 2: the recording has no reply to this call")

    asyncio.run(scenario())


def test_unknown_model_lists_what_there_is():
    with pytest.raises(
        UserError, match=r"unknown model 'gpt-4' .did you mean 'openai/gpt-4'.* offline, recorded"
    ):
        open_model("gpt-4")
