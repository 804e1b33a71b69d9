"""A program in a container: its output as the engine sends it (in frames, cut anywhere), and how it ended."""

import asyncio
import socket
from types import SimpleNamespace

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes import container_programs
from dgm.sandboxes.confined import Output
from dgm.sandboxes.container_programs import ContainerPrograms, Program

RUNNING, ENDED = {"ExitCode": None, "Pid": 7}, {"ExitCode": 3, "Pid": 7}


def frame(stream, body):
    return bytes([stream, 0, 0, 0]) + len(body).to_bytes(4, "big") + body


class Connected(socket.SocketIO):
    """A connection as the docker library hands it out, which has read some bytes beyond the response's head."""

    def __init__(self, near, read_ahead):
        super().__init__(near, "rw")
        fp = SimpleNamespace(peek=lambda: read_ahead)
        self._response = SimpleNamespace(raw=SimpleNamespace(_fp=SimpleNamespace(fp=fp)), close=self.close)


def run_program(*states, answer=b"", stdin=b"", podman=False, read_ahead=b"", step=5):
    """Run a program that answers so, in steps, and of which the engine then says these states; the last stays."""
    left = list(states)
    heard = bytearray()
    near, far = socket.socketpair()

    async def serve():
        reader, writer = await asyncio.open_connection(sock=far)
        heard.extend(await reader.readexactly(len(stdin)))
        for at in range(0, len(answer), step):
            writer.write(answer[at : at + step])
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    api = SimpleNamespace(
        exec_create=lambda *_, **__: {"Id": "e"},
        exec_start=lambda *_, **__: Connected(near, read_ahead),
        exec_inspect=lambda _: left.pop(0) if len(left) > 1 else left[0],
    )
    connection = SimpleNamespace(client=SimpleNamespace(api=api), facts=SimpleNamespace(is_podman=podman))
    output = Output(100)

    async def scenario():
        serving = asyncio.create_task(serve())
        programs = ContainerPrograms(connection, "c")
        code = await programs.run(Program(["true"], "1:1", {}), stdin, output, 30)
        await serving
        return code

    return asyncio.run(scenario()), output, bytes(heard)


def test_output_and_the_words_of_helpers_are_kept_apart():
    answer = frame(1, b"one") + frame(1, b"") + frame(2, b"said") + frame(1, b"two")
    code, output, heard = run_program(ENDED, answer=answer, stdin=b"input")
    assert (code, bytes(output.kept), bytes(output.said), heard) == (3, b"onetwo", b"said", b"input")


def test_what_the_library_has_read_ahead_is_not_lost():
    answer = frame(1, b"hello")
    _, output, _ = run_program(ENDED, answer=answer[3:], read_ahead=answer[:3])
    assert bytes(output.kept) == b"hello"


def test_a_large_input_is_sent_whole():
    stdin = bytes(range(256)) * 8000
    assert run_program(ENDED, stdin=stdin)[2] == stdin


@pytest.mark.parametrize("cut", [3, 8, 10])
def test_an_engine_that_hangs_up_in_a_frame_is_an_infrastructure_failure(cut):
    with pytest.raises(Infrastructure, match="hung up"):
        run_program(ENDED, answer=frame(1, b"hello")[:cut])


def test_what_never_began_and_says_nothing_is_an_outage():
    with pytest.raises(Infrastructure, match="did not start a program"):
        run_program({"ExitCode": 126, "Pid": 0})


@pytest.mark.parametrize(
    ("state", "answer", "podman"),
    [
        ({"ExitCode": 126, "Pid": 7}, b"", False),
        ({"ExitCode": 126, "Pid": 0}, frame(1, b"OCI runtime exec failed"), False),
        ({"ExitCode": 126, "Pid": 0}, b"", True),
        ({"ExitCode": 1, "Pid": 0}, b"", False),
    ],
)
def test_what_may_be_a_programs_own_exit_code_is_kept(state, answer, podman):
    assert run_program(state, answer=answer, podman=podman)[0] == state["ExitCode"]


def test_the_exit_code_is_waited_for_but_not_for_ever(monkeypatch):
    assert run_program(RUNNING, RUNNING, ENDED)[0] == 3
    monkeypatch.setattr(container_programs, "_NOTED_WITHIN_S", 0.05)
    with pytest.raises(Infrastructure, match="ended before a program's output did"):
        run_program(RUNNING)
