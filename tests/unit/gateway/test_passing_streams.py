"""Streams are handed on as they come, and a call is joined by whoever asks the same again."""

import asyncio

import httpx2
import pytest

from dgm.domain import Usage
from dgm.messages import WireProtocol, WireReply
from tests.support.gateway.bench import ACTION, MemoryJournal, chat, client, gateway, talking
from tests.support.gateway.wire_provider import STREAM, USAGE, Provider, streamed, until, whole

pytestmark = pytest.mark.slow


async def test_first_token_arrives_while_the_provider_still_writes_and_the_end_only_when_it_is_recorded(
    tmp_path,
):
    class Held(MemoryJournal):
        def __init__(self):
            super().__init__()
            self.let = asyncio.Event()

        async def record(self, call, settles=()):
            await self.let.wait()
            await super().record(call, settles)

    gate, journal = asyncio.Event(), Held()
    async with gateway(tmp_path / "g", Provider(streamed(gate)), journal) as opened:
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


async def test_stream_that_breaks_in_the_middle_is_broken_off_and_the_next_tries_answer_is_kept(tmp_path):
    async def answer(_request, delivery):
        delivery.pass_on(STREAM[0])
        await asyncio.sleep(0.05)
        delivery.take_back(Usage(0, 10, 1))
        await asyncio.sleep(0.05)
        return WireReply(WireProtocol.CHAT, b"".join(STREAM), True, Usage(1, 10, 5))

    journal = MemoryJournal()
    async with gateway(tmp_path / "g", Provider(answer), journal) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                with pytest.raises(httpx2.RemoteProtocolError):
                    await http.post("/chat/completions", json=chat(stream=True))
                again = await http.post("/chat/completions", json=chat(stream=True))
            assert "broke off" in await lease.wait_for_calls(5.0)
    assert again.content == b"".join(STREAM)
    # What the broken try was billed is in the call's account.
    assert [call.reply.usage.input_tokens for call in journal.paid.values()] == [20]


async def test_answer_that_follows_at_once_on_a_cut_stream_is_paid_once_for_one_repetition(tmp_path):
    read = asyncio.Event()

    async def read_until_cut(http):
        async with http.stream("POST", "/chat/completions", json=chat(stream=True)) as answer:
            async for _ in answer.aiter_raw():
                read.set()

    async def breaks_and_ends_at_once(_request, delivery):
        delivery.pass_on(STREAM[0])
        await read.wait()
        delivery.take_back(Usage(0, 10, 1))
        return WireReply(WireProtocol.CHAT, b"".join(STREAM), True, USAGE)

    journal, provider = MemoryJournal(), Provider(breaks_and_ends_at_once, streamed())
    async with talking(gateway(tmp_path / "g", provider, journal)) as (_, _, http):
        with pytest.raises(httpx2.RemoteProtocolError):
            await read_until_cut(http)
        paid = []
        for _ in range(2):
            answer = await http.post("/chat/completions", json=chat(stream=True))
            assert answer.content == b"".join(STREAM)
            paid.append(len(journal.paid))
    assert paid == [1, 2]


async def test_stream_of_which_nothing_was_read_goes_on_with_the_next_try(tmp_path):
    async def breaks_before_it_is_read(_request, delivery):
        delivery.pass_on(STREAM[0])
        delivery.take_back(Usage(0, 10, 1))
        return WireReply(WireProtocol.CHAT, b"".join(STREAM), True, USAGE)

    journal, provider = MemoryJournal(), Provider(breaks_before_it_is_read, streamed())
    async with talking(gateway(tmp_path / "g", provider, journal)) as (_, _, http):
        for number in (1, 2):
            answer = await http.post("/chat/completions", json=chat(stream=True))
            assert (answer.content, len(journal.paid)) == (b"".join(STREAM), number)


@pytest.mark.parametrize("joined", [False, True])
async def test_call_whose_job_is_gone_gives_its_place_back_before_its_next_try_unless_it_was_joined(
    tmp_path, joined
):
    failed = asyncio.Event()

    async def answer(request, delivery):
        await failed.wait()
        with delivery.waiting():
            await asyncio.sleep(0.05)
        await delivery.begin()
        delivery.sending()
        return await whole()(request, delivery)

    journal, provider = MemoryJournal(), Provider(answer)
    async with gateway(tmp_path / "g", provider, journal) as opened:
        with opened.lend(ACTION, "solve") as lease:
            async with client(opened, lease.token) as http:
                first = asyncio.create_task(http.post("/chat/completions", json=chat()))
                await until(lambda: provider.asked)
                first.cancel()
            await until(lambda: not lease.open)
        if not joined:
            failed.set()
            await until(lambda: journal.booked)
        with opened.lend(ACTION, "solve") as again:
            async with client(opened, again.token) as http:
                second = asyncio.create_task(http.post("/chat/completions", json=chat()))
                if joined:
                    await until(lambda: again.open)
                    await asyncio.sleep(0.05)
                failed.set()
                assert (await second).status_code == 200
    assert len(provider.asked) == (1 if joined else 2)
