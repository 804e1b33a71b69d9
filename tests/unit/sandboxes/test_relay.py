"""Connections from inside a sandbox over two pipes: they stay apart, and no byte from inside does harm."""

import asyncio
import contextlib
import os
import socket
import sys
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.errors import Infrastructure
from dgm.sandboxes import relay as outside
from dgm.sandboxes import relay_inside as inside
from dgm.sandboxes.relay import Frame, Relay, take_frames
from dgm.sandboxes.relay_inside import CHUNK, CREDIT, DATA, END, HEAD, OPEN, PING, RESET, STREAMS, WINDOW

FRAMES = st.one_of(
    st.builds(Frame, st.integers(0, 2**32 - 1), st.sampled_from([OPEN, END, RESET, PING]), st.just(b"")),
    st.builds(Frame, st.integers(0, 2**32 - 1), st.just(DATA), st.binary(min_size=1, max_size=40)),
    st.builds(Frame, st.integers(0, 2**32 - 1), st.just(CREDIT), st.binary(min_size=4, max_size=4)),
)


def packed(*frames):
    return b"".join(HEAD.pack(f[0], f[1], len(f[2])) + f[2] for f in frames)


@given(st.lists(FRAMES, max_size=12), st.integers(1, 30))
def test_frames_are_the_same_however_their_bytes_are_cut(frames, step):
    stream, buffer, found = packed(*frames), bytearray(), []
    for at in range(0, len(stream), step):
        buffer += stream[at : at + step]
        found += take_frames(buffer)
    assert (found, buffer) == (frames, b"")


@given(st.binary(max_size=200))
def test_any_bytes_are_frames_or_refused_and_never_more_than_a_frame_waits(data):
    buffer = bytearray(data)
    with contextlib.suppress(Infrastructure):
        assert all(len(frame.body) <= CHUNK for frame in take_frames(buffer))
        assert len(buffer) < HEAD.size + CHUNK


@pytest.mark.parametrize(
    ("kind", "length"), [(DATA, CHUNK + 1), (DATA, 0), (OPEN, 1), (CREDIT, 5), (6, 0), (255, 2**32 - 1)]
)
def test_what_is_no_frame_is_refused_before_its_body_comes(kind, length):
    with pytest.raises(Infrastructure, match="no frame"):
        list(take_frames(bytearray(HEAD.pack(1, kind, length))))


class Script:
    """A pipe whose inside says what the test wants, and keeps what the host sends."""

    def __init__(self):
        self.said = asyncio.Queue()
        self.sent = bytearray()

    async def read(self):
        return await self.said.get()

    def write(self, data):
        self.sent += data

    async def drain(self):
        await asyncio.sleep(0)

    def frames(self):
        return list(take_frames(bytearray(self.sent)))


@contextlib.asynccontextmanager
async def server(path, answer):
    """A server at ``path`` that lets ``answer`` work on each connection."""

    async def serve(reader, writer):
        with contextlib.suppress(ConnectionError):
            await answer(reader, writer)
        writer.close()

    async with await asyncio.start_unix_server(serve, path):
        yield


async def echo(reader, writer):
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()


async def swallow(reader, writer):
    while await reader.read(CHUNK):
        pass


async def ignore(reader, writer):
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(30)


async def until(question):
    async with asyncio.timeout(20):
        while not question():
            await asyncio.sleep(0.005)


def scripted(tmp_path, answer, play):
    """Runs ``play`` with a scripted pipe to a server, and returns what it returns."""

    async def scenario():
        async with server(tmp_path / "s", answer):
            pipe = Script()
            carrying = asyncio.create_task(Relay(pipe, tmp_path / "s").carry())
            try:
                return await play(pipe, carrying)
            finally:
                carrying.cancel()
                await asyncio.gather(carrying, return_exceptions=True)

    return asyncio.run(scenario())


@pytest.mark.parametrize(
    "bad",
    [
        (7, OPEN, b""),
        (7, CREDIT, b"\0\0\0\1"),
        (7, DATA, b"y"),
    ],
    ids=["opened twice", "more credit than was used", "bytes after the end"],
)
def test_a_connection_that_breaks_a_rule_is_reset_alone(tmp_path, bad):
    async def play(pipe, carrying):
        pipe.said.put_nowait(packed((7, OPEN, b""), (8, OPEN, b""), (7, END, b""), bad, (8, DATA, b"hello")))
        await until(lambda: (8, DATA, b"hello") in pipe.frames())
        return pipe.frames(), carrying.done()

    frames, ended = scripted(tmp_path, echo, play)
    assert [frame for frame in frames if frame.number == 7] == [(7, RESET, b"")]
    assert not ended


def test_more_than_was_lent_resets_the_connection(tmp_path):
    async def play(pipe, carrying):
        whole = [(1, DATA, bytes(CHUNK))] * (WINDOW // CHUNK)
        pipe.said.put_nowait(packed((1, OPEN, b""), *whole, (1, DATA, b"x")))
        await until(pipe.frames)
        return pipe.frames()

    assert scripted(tmp_path, ignore, play) == [(1, RESET, b"")]


def test_too_many_connections_are_reset(tmp_path):
    async def play(pipe, carrying):
        pipe.said.put_nowait(packed(*((number, OPEN, b"") for number in range(STREAMS + 2))))
        await until(lambda: len(pipe.frames()) == 2)
        return pipe.frames()

    assert scripted(tmp_path, ignore, play) == [(STREAMS, RESET, b""), (STREAMS + 1, RESET, b"")]


def test_what_is_no_frame_ends_the_relay(tmp_path):
    async def play(pipe, carrying):
        pipe.said.put_nowait(packed((1, OPEN, b"")) + b"\xff" * 40)
        await carrying

    with pytest.raises(Infrastructure, match="no frame"):
        scripted(tmp_path, echo, play)


def test_a_relay_that_does_not_answer_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(outside, "ANSWER_S", 0.05)

    async def play():
        await Relay(Script(), tmp_path / "s").ping()

    with pytest.raises(Infrastructure, match="did not answer"):
        asyncio.run(play())


@settings(max_examples=40, deadline=None)
@given(frames=st.lists(FRAMES.map(lambda f: f._replace(number=f.number % 4)), max_size=40))
def test_no_sequence_of_frames_keeps_a_neighbour_from_its_answer(tmp_path_factory, frames):
    async def play(pipe, carrying):
        pipe.said.put_nowait(packed(*frames, (99, OPEN, b""), (99, DATA, b"mine"), (99, END, b"")))
        await until(lambda: (99, END, b"") in pipe.frames())
        return [frame for frame in pipe.frames() if frame.number == 99]

    found = scripted(tmp_path_factory.mktemp("r"), echo, play)
    assert found == [(99, DATA, b"mine"), (99, END, b"")]


class Child:
    """The program that runs inside a sandbox, as a child of this process."""

    def __init__(self, process):
        self.process = process

    async def read(self):
        return await self.process.stdout.read(CHUNK)

    def write(self, data):
        self.process.stdin.write(data)

    async def drain(self):
        # The end of a test closes it while the last frames come.
        with contextlib.suppress(ConnectionError):
            await self.process.stdin.drain()


def carried(tmp_path, answer, play):
    """Runs ``play`` in a thread with the path of the relayed socket, over the real program."""

    async def scenario():
        path = str(tmp_path / "inside")
        async with server(tmp_path / "s", answer):
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-I",
                inside.__file__,
                path,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            relay = Relay(Child(process), tmp_path / "s")
            carrying = asyncio.create_task(relay.carry())
            try:
                await relay.ping()
                return await asyncio.wait_for(asyncio.to_thread(play, path), 60)
            finally:
                process.stdin.close()
                await asyncio.wait_for(process.wait(), 20)
                await asyncio.wait_for(carrying, 20)

    return asyncio.run(scenario())


def connected(path):
    made = socket.socket(socket.AF_UNIX)
    made.settimeout(30)
    made.connect(path)
    return made


def everything(near):
    found = b""
    while data := near.recv(CHUNK):
        found += data
    return found


pytestmark = pytest.mark.starts_processes


def test_many_times_the_window_passes_both_ways_unchanged(tmp_path):
    sent = os.urandom(5 * WINDOW + 17)

    def play(path):
        with connected(path) as near:
            sending = threading.Thread(target=near.sendall, args=(sent,))
            sending.start()
            found = b""
            while len(found) < len(sent):
                found += near.recv(CHUNK)
            sending.join()
            near.shutdown(socket.SHUT_WR)
            return found, near.recv(1)

    assert carried(tmp_path, echo, play) == (sent, b"")


def test_readers_that_stall_stop_nobody_else(tmp_path):
    async def pour(reader, writer):
        if await reader.read(1) == b"p":
            while True:
                writer.write(bytes(CHUNK))
                await writer.drain()
        writer.write(b"answer")

    def play(path):
        stalled = [connected(path) for _ in range(8)]
        for near in stalled:
            near.sendall(b"p")
        for near in stalled:
            near.recv(10)
        answers = []
        for _ in range(20):
            with connected(path) as near:
                near.sendall(b"a")
                answers.append(everything(near))
        for near in stalled:
            near.close()
        return answers

    assert carried(tmp_path, pour, play) == [b"answer"] * 20


def test_a_server_that_reads_nothing_stops_nobody_else(tmp_path):
    async def ignore_some(reader, writer):
        first = await reader.read(1)
        if first == b"i":
            await asyncio.sleep(30)
        writer.write(b"answer")

    def play(path):
        with connected(path) as stalled, connected(path) as other:
            stalled.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                stalled.send(b"i")
                while True:
                    stalled.send(bytes(CHUNK))
            other.sendall(b"a")
            return everything(other)

    assert carried(tmp_path, ignore_some, play) == b"answer"


def test_more_connections_than_are_carried_wait_for_their_turn(tmp_path):
    def play(path):
        first = [connected(path) for _ in range(STREAMS)]
        for near in first:
            near.sendall(b"x")
            near.recv(1)
        late = connected(path)
        late.sendall(b"late")
        for near in first:
            near.close()
        with late:
            return late.recv(10)

    assert carried(tmp_path, echo, play) == b"late"


def test_a_socket_that_nobody_answers_ends_the_connection(tmp_path, monkeypatch):
    monkeypatch.setattr(outside, "_CONNECT_S", 0.0)

    def play(path):
        (tmp_path / "s").unlink()
        with connected(path) as near:
            near.sendall(b"x")
            with contextlib.suppress(ConnectionError):
                return everything(near)
            return b""

    assert carried(tmp_path, echo, play) == b""


def test_a_program_that_goes_away_ends_the_servers_side(tmp_path):
    gone = []

    async def note(reader, writer):
        await swallow(reader, writer)
        gone.append(True)

    def play(path):
        connected(path).close()
        ends = time.monotonic() + 20
        while not gone and time.monotonic() < ends:
            time.sleep(0.02)
        return bool(gone)

    assert carried(tmp_path, note, play)
