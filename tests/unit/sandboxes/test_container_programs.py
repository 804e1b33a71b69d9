"""What is made of the end of a program in a container."""

import asyncio
from types import SimpleNamespace

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes import container_programs
from dgm.sandboxes.confined import Output
from dgm.sandboxes.container_programs import ContainerPrograms, Program
from dgm.sandboxes.engine_facts import EngineKind


def run_program(monkeypatch, *states, kind=EngineKind.DOCKER, said=b""):
    """Returns the exit code of a program that the engine describes so, answer by answer; the last one stays."""
    left = list(states)

    async def attach(connection, path, stdin, output):
        output.add(said)

    monkeypatch.setattr(container_programs, "attach", attach)
    api = SimpleNamespace(
        api_version="1.41",
        exec_create=lambda *_, **__: {"Id": "e"},
        exec_inspect=lambda _: left.pop(0) if len(left) > 1 else left[0],
    )
    connection = SimpleNamespace(client=SimpleNamespace(api=api), facts=SimpleNamespace(kind=kind))
    program = Program(["true"], "1:1", {})
    return asyncio.run(ContainerPrograms(connection, "c").run(program, b"", Output(100), 30))


def test_what_never_began_and_says_nothing_is_an_outage(monkeypatch):
    with pytest.raises(Infrastructure, match="did not start a program"):
        run_program(monkeypatch, {"ExitCode": 126, "Pid": 0})


@pytest.mark.parametrize(
    ("state", "said", "kind"),
    [
        ({"ExitCode": 126, "Pid": 7}, b"", EngineKind.DOCKER),
        ({"ExitCode": 126, "Pid": 0}, b"OCI runtime exec failed", EngineKind.DOCKER),
        ({"ExitCode": 126, "Pid": 0}, b"", EngineKind.PODMAN),
        ({"ExitCode": 1, "Pid": 0}, b"", EngineKind.DOCKER),
    ],
)
def test_what_may_be_a_programs_own_exit_code_is_kept(monkeypatch, state, said, kind):
    assert run_program(monkeypatch, state, said=said, kind=kind) == state["ExitCode"]


def test_the_exit_code_is_waited_for_but_not_for_ever(monkeypatch):
    running, ended = {"ExitCode": None, "Pid": 7}, {"ExitCode": 3, "Pid": 7}
    assert run_program(monkeypatch, running, running, ended) == 3
    monkeypatch.setattr(container_programs, "_NOTED_WITHIN_S", 0.05)
    with pytest.raises(Infrastructure, match="ended before a program's output did"):
        run_program(monkeypatch, running)
