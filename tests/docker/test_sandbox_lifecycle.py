"""How sandboxes begin and end, in both engines: nothing stays behind, whoever dies."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dgm.errors import Infrastructure
from dgm.sandboxes import users
from dgm.sandboxes.choose import choose
from dgm.sandboxes.docker import DockerEngine
from tests.docker.conftest import Inside, spec
from tests.support.engine_forward import forward_tcp

OWNER = Path(__file__).with_name("owner.py")
ROOT = Path(__file__).parents[2]


def processes_with(text: str) -> list[int]:
    """Processes of this machine whose command line holds ``text``."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if text.encode() in line:
                found.append(int(folder.name))
    return found


def eventually(question, within_s: float = 60.0) -> bool:
    """Asks until the answer is yes."""
    end = time.monotonic() + within_s
    while time.monotonic() < end:
        if question():
            return True
        time.sleep(0.1)
    return False


def killed_owner(engine_name: str, label: str, lifetime_s: float) -> None:
    """Starts a process that owns a busy sandbox, and kills it."""
    with subprocess.Popen(
        [sys.executable, str(OWNER), engine_name, label, str(lifetime_s)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"open\n"
        # The program itself, inside: before that, bubblewrap is not yet tied to its parent.
        assert eventually(lambda: len(processes_with(f"echo {label}")) > 0)
        time.sleep(1.0)
        owner.kill()


def test_a_killed_owner_leaves_nothing_once_it_is_reaped(engine, runner):
    label = f"killed-{os.getpid()}-{engine.name}"
    killed_owner(engine.name, label, 300)
    assert runner.run(engine.reap_left({"dgm.run": label})) == 1
    assert eventually(lambda: processes_with(f"echo {label}") == [])
    assert runner.run(engine.reap({"dgm.run": label})) == 0


def test_a_killed_owners_program_ends_without_any_reaper(engine, runner):
    label = f"alone-{os.getpid()}-{engine.name}"
    killed_owner(engine.name, label, 10)
    assert eventually(lambda: processes_with(f"echo {label}") == [])
    runner.run(engine.reap({"dgm.run": label}))


def test_reaping_takes_only_what_carries_all_labels_and_spares_living_owners_if_asked(engine, runner):
    async def work():
        labels = {"dgm.run": f"reap-{os.getpid()}", "dgm.action": "7"}
        async with engine.open(spec(labels=labels)) as sandbox:
            others = await engine.reap({**labels, "dgm.action": "8"}) + await engine.reap_left(labels)
            sleeping = asyncio.create_task(sandbox.exec(["sleep", "60"], timeout_s=60))
            await asyncio.sleep(0.5)
            alive = not sleeping.done()
            reaped = await engine.reap(labels)
            with pytest.raises(Infrastructure):
                await asyncio.wait_for(sleeping, 30)
            with pytest.raises(Infrastructure):
                await sandbox.exec(["true"], timeout_s=20)
        return others, alive, reaped

    assert runner.run(work()) == (0, True, 1)


def test_a_sandbox_ends_with_its_lifetime(inside: Inside):
    async def work(sandbox):
        started = time.monotonic()
        with pytest.raises(Infrastructure):
            await sandbox.exec(["sleep", "60"], timeout_s=60)
        return time.monotonic() - started

    assert inside(work, lifetime_s=2.0) < 20


def test_an_error_inside_still_removes_the_sandbox_and_closing_twice_is_harmless(engine, runner):
    label = {"dgm.run": f"error-{os.getpid()}"}

    async def work():
        async with engine.open(spec(labels=label)) as sandbox:
            sandbox.close()
            raise KeyError("of the caller")

    with pytest.raises(KeyError):
        runner.run(work())
    assert runner.run(engine.reap(label)) == 0


@pytest.mark.parametrize("after_s", [0.0, 0.003, 0.1, 0.5])
def test_cancelling_at_any_moment_removes_the_sandbox(engine, runner, after_s):
    label = {"dgm.run": f"cancel-{os.getpid()}"}

    async def work():
        async with engine.open(spec(labels=label)) as sandbox:
            await sandbox.exec(["sleep", "60"], timeout_s=60)

    async def cancelled():
        task = asyncio.create_task(work())
        await asyncio.sleep(after_s)
        task.cancel()
        await asyncio.wait([task], timeout=30)
        return task.cancelled()

    assert runner.run(cancelled())
    assert runner.run(engine.reap(label)) == 0


def test_eight_at_once(engine, runner):
    async def one(number):
        async with engine.open(spec()) as sandbox:
            done = await sandbox.exec(["sh", "-c", f"echo {number} > f; sleep 0.2; cat f"], timeout_s=60)
            return int(done.output)

    async def all_of_them():
        return await asyncio.gather(*(one(number) for number in range(8)))

    assert runner.run(all_of_them()) == list(range(8))


@pytest.mark.docker
@pytest.mark.sandbox
def test_an_engine_that_stops_in_mid_use_is_an_infrastructure_failure(engine, runner, monkeypatch):
    if not isinstance(engine, DockerEngine):
        pytest.skip("bubblewrap has no engine that could stop")
    if not engine.address.socket:
        pytest.skip(f"NOT RUN: {engine.address} has no socket here")

    async def work():
        with forward_tcp(engine.address.socket) as port:
            monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
            behind = await asyncio.to_thread(lambda: choose("docker"))
            opening = behind.open(spec(lifetime_s=20))
            sandbox = await opening.__aenter__()
            sleeping = asyncio.create_task(sandbox.exec(["sleep", "60"], timeout_s=60))
            await asyncio.sleep(1)
        with pytest.raises(Infrastructure):
            await asyncio.wait_for(sleeping, 20)
        with pytest.raises(Infrastructure):
            await opening.__aexit__(None, None, None)

    runner.run(work())


def test_live_sandboxes_never_share_a_user(engine, runner, monkeypatch):
    for name, first in (("BUBBLEWRAP", 57_001), ("DOCKER", 57_003)):
        monkeypatch.setattr(users, name, range(first, first + 2))
    if engine.name == "bubblewrap" and os.geteuid() != 0:
        pytest.skip("NOT RUN: an ordinary user's sandboxes have one user for the kernel")

    async def uid(sandbox):
        return int((await sandbox.exec(["id", "-u"], timeout_s=60)).output)

    async def work():
        async with engine.open(spec()) as one, engine.open(spec()) as other:
            with pytest.raises(Infrastructure, match="all 2 user ids of sandboxes are taken"):
                async with engine.open(spec()):
                    pass
            taken = {await uid(one), await uid(other)}
        async with engine.open(spec()) as later:
            return taken, await uid(later)

    taken, later = runner.run(work())
    assert len(taken) == 2
    assert later in taken


@pytest.mark.docker
@pytest.mark.sandbox
def test_a_program_whose_end_the_engine_notes_late_did_not_run_out_of_time(engine, runner, monkeypatch):
    if not isinstance(engine, DockerEngine):
        pytest.skip("bubblewrap's programs are this process's own children")
    inspect, asked = engine.client.api.exec_inspect, []

    def late(ident):
        asked.append(ident)
        return inspect(ident) if len(asked) > 3 else {**inspect(ident), "Running": True, "ExitCode": None}

    monkeypatch.setattr(engine.client.api, "exec_inspect", late)

    async def work():
        async with engine.open(spec()) as sandbox:
            return await sandbox.exec(["sh", "-c", "echo done; exit 3"], timeout_s=60)

    done = runner.run(work())
    assert (done.exit_code, done.timed_out, done.output) == (3, False, b"done\n")


@pytest.mark.docker
@pytest.mark.sandbox
def test_a_program_that_dies_of_memory_while_the_engine_is_slow_did_not_run_out_of_time(
    engine, runner, monkeypatch
):
    if not isinstance(engine, DockerEngine):
        pytest.skip("bubblewrap's programs are this process's own children")
    create = engine.client.api.exec_create

    def slow(*args, **more):
        time.sleep(3)
        return create(*args, **more)

    monkeypatch.setattr(engine.client.api, "exec_create", slow)
    eat = "eaten = []\nwhile True: eaten.append(bytearray(b'x') * 20_000_000)"

    async def work():
        async with engine.open(spec(memory_mb=64)) as sandbox:
            eater = await sandbox.exec(["python3", "-c", eat], timeout_s=2.5)
            sleeper = await sandbox.exec(["sleep", "60"], timeout_s=2.5)
        return eater, sleeper

    eater, sleeper = runner.run(work())
    assert (eater.out_of_memory, eater.timed_out, eater.exit_code) == (True, False, 137)
    assert (sleeper.out_of_memory, sleeper.timed_out, sleeper.exit_code) == (False, True, 124)
