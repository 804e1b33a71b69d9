"""What a call is counted at that has no recorded answer."""

import asyncio

import pytest

from dgm.errors import ArchiveHeld, Infrastructure
from dgm.messages import CutCall
from tests.support.gateway.bench import ACTION, MemoryJournal, chat, client, gateway, talking
from tests.support.gateway.wire_provider import Provider, streamed

pytestmark = pytest.mark.slow


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 300))


@pytest.mark.slow
def test_call_that_the_sudden_end_of_a_session_cuts_off_is_booked_at_its_worst_case(tmp_path):
    journal, provider = MemoryJournal(), Provider(streamed(asyncio.Event()))

    async def ended():
        async with gateway(tmp_path / "g", provider, journal) as opened:
            with opened.lend(ACTION, "solve") as lease:
                async with (
                    client(opened, lease.token) as http,
                    http.stream("POST", "/chat/completions", json=chat(stream=True)) as answer,
                ):
                    await anext(answer.aiter_bytes())
            raise RuntimeError("it ends at once")

    with pytest.raises(RuntimeError, match="ends at once"):
        run(ended())
    assert [call.key for call in journal.lost] == [begun.key for begun in journal.begun]
    assert journal.lost[0].most.output_tokens == 16_000
    assert not journal.booked
    assert not journal.paid


@pytest.mark.parametrize(
    ("error", "asked"),
    # The second is the neutral question; a database that another program holds says nothing of the model.
    [(Infrastructure("the disk is full"), [1, 2]), (ArchiveHeld("database is locked"), [1])],
)
async def test_answer_that_cannot_be_recorded_is_booked_at_its_worst_case(tmp_path, error, asked):
    class Failing(MemoryJournal):
        async def record(self, call, settles=()):
            raise error

    journal = Failing()
    async with gateway(tmp_path / "g", Provider(), journal) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                assert (await http.post("/chat/completions", json=chat())).status_code == 503
        assert bool(opened.caller.trouble) == (len(asked) == 2)
    assert [call.key.number for call in journal.lost] == asked
    assert not journal.booked


async def test_answer_ends_a_cut_off_call_at_its_known_input_and_all_of_its_output(tmp_path):
    journal = MemoryJournal()
    async with talking(gateway(tmp_path / "g", Provider(), journal)) as (_, _, http):
        await http.post("/chat/completions", json=chat("another question"))
        other = cut_of(journal.begun[0], 8)
        await http.post("/chat/completions", json=chat())
        same = cut_of(journal.begun[1], 9)
        journal.cut += [other, same]
        await http.post("/chat/completions", json=chat())
    ((number, correction),) = journal.booked
    settled = same.booked + correction
    assert (number, settled.input_tokens, settled.output_tokens) == (9, 10, 16_000)
    assert correction.input_tokens < 0
    assert settled.usd == pytest.approx(0.16001)


def cut_of(begun, number):
    """The same call, as one that an earlier process's death cut off."""
    return CutCall(number, begun.request, begun.model, begun.role, begun.most)
