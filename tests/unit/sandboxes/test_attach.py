"""A program's output as the engine sends it: in frames, which may be empty, cut anywhere, and broken off."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes.attach import attach, open_exec
from dgm.sandboxes.confined import Output

SWITCHED = b"HTTP/1.1 101 UPGRADED\r\n\r\n"


class Engine(NamedTuple):
    path: Path

    async def open_streams(self):
        return await asyncio.open_unix_connection(self.path)


def frame(stream, body):
    return bytes([stream, 0, 0, 0]) + len(body).to_bytes(4, "big") + body


def talk(tmp_path, answer, use, step=5):
    """Lets ``use`` work on an engine that answers with these bytes and hangs up."""
    heard = bytearray()

    async def serve(reader, writer):
        heard.extend(await reader.readuntil(b"\r\n\r\n"))
        for at in range(0, len(answer), step):
            writer.write(answer[at : at + step])
            await writer.drain()
            await asyncio.sleep(0)
        writer.write_eof()
        heard.extend(await reader.read())
        writer.close()

    async def scenario():
        async with await asyncio.start_unix_server(serve, tmp_path / "engine"):
            return await asyncio.wait_for(use(Engine(tmp_path / "engine")), 20)

    return asyncio.run(scenario()), bytes(heard)


def test_output_and_what_helpers_say_are_kept_apart(tmp_path):
    output = Output(100)
    frames = frame(1, b"one") + frame(1, b"") + frame(2, b"said") + frame(1, b"two")
    _, heard = talk(tmp_path, SWITCHED + frames, lambda engine: attach(engine, "/exec", b"input", output))
    assert (bytes(output.kept), bytes(output.said)) == (b"onetwo", b"said")
    assert heard.startswith(b"POST /exec HTTP/1.1\r\n")
    assert heard.endswith(b"input")


@pytest.mark.parametrize("cut", [3, 8, 10])
def test_an_engine_that_hangs_up_in_a_frame_is_an_infrastructure_failure(tmp_path, cut):
    with pytest.raises(Infrastructure, match="hung up"):
        talk(tmp_path, SWITCHED + frame(1, b"hello")[:cut], lambda to: attach(to, "/exec", b"", Output(9)))


def test_a_refusal_is_quoted(tmp_path):
    answer = b"HTTP/1.1 404 Not Found\r\n\r\nNo such exec instance"
    with pytest.raises(Infrastructure, match=r"refused to start a program \(404\): No such exec instance"):
        talk(tmp_path, answer, lambda to: attach(to, "/exec", b"", Output(9)), step=1000)


def test_a_stream_is_read_while_the_program_runs(tmp_path):
    said = Output(100)

    async def use(engine):
        async with open_exec(engine, "/exec") as stream:
            stream.write(b"question")
            await stream.drain()
            found = b""
            while piece := await stream.read(said):
                found += piece
            return found

    found, heard = talk(tmp_path, SWITCHED + frame(2, b"note") + frame(1, b"answer"), use)
    assert (found, bytes(said.said)) == (b"answer", b"note")
    assert heard.endswith(b"question")
