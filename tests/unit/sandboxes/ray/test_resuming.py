"""A stream over connections that are cut: every byte arrives once and in order, and a long absence is an error."""

import asyncio
import random
from contextlib import asynccontextmanager, suppress

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes.ray.resuming import ResumingPipe


async def carry(pipe, reader, writer):
    with suppress(OSError, EOFError, TimeoutError):
        await pipe.carry(reader, writer)


@asynccontextmanager
async def joined(near, far):
    """Two pipes over a real connection; both ends of it."""
    tasks, ends = [], []

    async def accept(reader, writer):
        ends.append(writer)
        tasks.append(asyncio.current_task())
        await carry(far, reader, writer)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    ends.append(writer)
    tasks.append(asyncio.create_task(carry(near, reader, writer)))
    try:
        yield ends
    finally:
        for each in ends:
            each.transport.abort()
        await asyncio.gather(*tasks, return_exceptions=True)
        server.close()


def test_every_byte_arrives_once_however_often_it_is_cut():
    async def go(rng):
        near, far = ResumingPipe(), ResumingPipe()
        sent = [rng.randbytes(5_000_000), rng.randbytes(2_000_000)]
        got = [bytearray(), bytearray()]

        async def send(pipe, data):
            for at in range(0, len(data), 7001):
                pipe.write(data[at : at + 7001])
                await pipe.drain()
                await asyncio.sleep(0)

        async def receive(pipe, into, count):
            while len(into) < count:
                into += await pipe.read()

        work = [
            asyncio.create_task(each)
            for each in (
                send(near, sent[0]),
                send(far, sent[1]),
                receive(far, got[0], len(sent[0])),
                receive(near, got[1], len(sent[1])),
            )
        ]
        cuts = 0
        while not all(task.done() for task in work):
            enough = len(got[0]) + rng.randrange(1, 400_000)
            async with joined(near, far):
                while len(got[0]) < min(enough, len(sent[0])) or (
                    cuts > 9 and not all(t.done() for t in work)
                ):
                    await asyncio.sleep(0)
                cuts += 1
        await asyncio.gather(*work)
        assert [bytes(each) for each in got] == sent
        return cuts

    assert asyncio.run(go(random.Random(1))) > 2


def test_an_absence_counts_from_the_first_connection_on():
    async def go():
        now = [0.0]
        near, far = (ResumingPipe(60.0, lambda: now[0]) for _ in range(2))
        now[0] = 5.0
        assert near.apart_s == 0.0
        async with joined(near, far):
            await near.wait_until_connected()
            now[0] = 9.0
            assert near.apart_s == 0.0
        now[0] = 12.0
        assert near.apart_s == 3.0
        async with joined(near, far):
            await near.wait_until_connected()
            now[0] = 50.0
            assert (near.apart_s, near.broken) == (3.0, "")

    asyncio.run(go())


def test_a_long_absence_breaks_it_for_readers_and_writers():
    async def go():
        pipe = ResumingPipe(0.05)
        pipe.write(bytes(2 << 20))
        waits = [
            asyncio.ensure_future(each) for each in (pipe.read(), pipe.drain(), pipe.wait_until_connected())
        ]
        await pipe.watch()
        for each in waits:
            with pytest.raises(Infrastructure, match="no connection for"):
                await each
        await pipe.wait_until_broken()

    asyncio.run(go())


def test_a_count_that_cannot_be_is_refused():
    async def go():
        pipe = ResumingPipe()
        reader = asyncio.StreamReader()
        reader.feed_data((1 << 40).to_bytes(8, "big"))
        server = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        with pytest.raises(Infrastructure, match="never sent"):
            await pipe.carry(reader, writer)
        writer.close()
        server.close()

    asyncio.run(go())
