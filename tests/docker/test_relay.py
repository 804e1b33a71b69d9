"""The relay of a Docker sandbox: no agent can harm it, and its loss in the middle of a job is no verdict."""

import asyncio
import contextlib

import pytest

from dgm.config import LimitSettings
from dgm.domain import Entry
from dgm.errors import Infrastructure
from dgm.protocols import Job, JobKind, Mount, SharedSocket
from dgm.sandboxes import relay
from dgm.sandboxes.confined import Output
from dgm.sandboxes.container_programs import Program
from dgm.sandboxes.docker import DockerEngine
from dgm.worker.workbench import SandboxWorkbench
from tests.docker.conftest import Inside, spec
from tests.support.gateway.bench import ACTION, gateway

SOCKET = "/run/dgm/gateway.sock"
ASK = """
import socket
def ask(word=b"hello", path="/run/dgm/gateway.sock"):
    with socket.socket(socket.AF_UNIX) as near:
        near.settimeout(30)
        near.connect(path)
        near.sendall(word)
        near.shutdown(socket.SHUT_WR)
        found = b""
        while data := near.recv(65536):
            found += data
        return found
"""
HARM = """
import os, signal
done = []
def attempt(what, *given):
    try:
        what(*given)
    except OSError:
        return
    done.append((what.__name__, given))
def read(path):
    with open(path, "rb") as opened:
        opened.read(1)
def write(path):
    with open(path, "wb") as opened:
        opened.write(b"x")
others = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if os.stat("/proc/" + pid).st_uid != os.getuid()]
assert any(b"gateway.sock" in open("/proc/" + pid + "/cmdline", "rb").read() for pid in others)
for pid in others:
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGHUP):
        attempt(os.kill, int(pid), number)
    attempt(read, "/proc/" + pid + "/mem")
    attempt(write, "/proc/" + pid + "/fd/0")
    attempt(write, "/proc/" + pid + "/fd/1")
    attempt(os.sched_setaffinity, int(pid), {0})
attempt(os.unlink, "/run/dgm/gateway.sock")
attempt(os.rename, "/run/dgm", "/run/gone")
attempt(write, "/run/dgm/own")
attempt(os.chmod, "/run/dgm/gateway.sock", 0)
print(done, ask())
"""
FLOOD = """
import time
pours = []
for _ in range(300):
    near = socket.socket(socket.AF_UNIX)
    near.setblocking(False)
    try:
        near.connect("/run/dgm/gateway.sock")
    except OSError:
        continue
    pours.append(near)
    try:
        while True:
            near.send(bytes(65536))
    except OSError:
        pass
time.sleep(1)
print(len(pours) > 60)
for near in pours:
    near.close()
print(ask())
"""
STARVE = """
import os, time
with open("/work/full", "wb") as full:
    try:
        while True:
            full.write(bytes(1 << 16))
            full.flush()
    except OSError:
        pass
while True:
    try:
        if os.fork() == 0:
            kept = bytearray(1 << 20)
            time.sleep(60)
    except OSError:
        time.sleep(0.01)
"""
AGENT = """
import json, os, sys, time, urllib.request
job = json.load(open(sys.argv[1]))
def ask():
    body = json.dumps({"model": "default", "messages": [{"role": "user", "content": "hi"}]}).encode()
    head = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, head)
    urllib.request.urlopen(request, timeout=2).read()
ask()
open("/tmp/asked", "w").close()
while not os.path.exists("/tmp/go"):
    time.sleep(0.02)
try:
    ask()
except OSError:
    sys.exit("no answer")
open(os.path.join(job["workdir"], "a.txt"), "w").write("mended\\n")
"""
TOML = Entry(b'[agent]\ncommand = ["python3", "agent.py"]\ncheck = ["true"]\n')
KEEPER = "10002:10002"


@pytest.fixture
def docker(engine):
    if not isinstance(engine, DockerEngine):
        pytest.skip("bubblewrap has a socket in place of a relay")
    return engine


@pytest.fixture
def served(tmp_path, docker, runner):
    """Runs programs one by one in a fresh sandbox, whose relay leads to a server that says what it was told."""

    async def answer(reader, writer):
        with contextlib.suppress(ConnectionError):
            said = b""
            while data := await reader.read(65536):
                said = (said + data)[:100]
            writer.write(said)
            await writer.drain()
        writer.close()

    def play(*programs, **limits):
        async def scenario():
            shared = SharedSocket(tmp_path / "gateway.sock", SOCKET)
            opened = docker.open(spec(socket=shared, **limits))
            async with await asyncio.start_unix_server(answer, shared.source), opened as sandbox:
                return [await sandbox.exec(["python3", "-c", ASK + each], timeout_s=60) for each in programs]

        return runner.run(asyncio.wait_for(scenario(), 180))

    return play


def test_no_agent_can_end_stop_read_or_replace_it(served):
    (done,) = served(HARM)
    assert done.output == b"[] b'hello'\n"


def test_a_flood_of_connections_harms_only_its_own_and_passes(served):
    (done,) = served(FLOOD)
    assert done.output.split(b"\n")[:2] == [b"True", b"b'hello'"]


def test_an_agent_that_leaves_it_no_memory_ran_out_of_memory(served):
    starved, after = served(STARVE, "print('here')", memory_mb=64, disk_mb=160)
    assert (starved.out_of_memory, starved.exit_code) == (True, 137)
    assert after.exit_code in (0, 137)


async def command_relay(sandbox, command):
    """Runs a shell command as the relay's user, who alone has power over it."""
    output = Output(1000)
    program = Program(
        ["sh", "-c", f"pid=$(pgrep -u 10002 python3); {command}"], KEEPER, {"PATH": "/usr/bin:/bin"}
    )
    assert await sandbox._programs.run(program, b"", output, 30) == 0, output


@pytest.mark.parametrize(
    ("command", "cause"),
    [
        ("kill -9 $pid", "was lost: it ended with exit code 137"),
        ("kill -STOP $pid", "was lost: it did not answer within 0 s"),
        ("head -c 1000000 /dev/zero | tr '\\\\0' '\\\\377' >/proc/$pid/fd/1", "was lost: .* no frame"),
    ],
    ids=["killed", "stalled", "flooded"],
)
def test_its_loss_in_the_middle_of_a_job_is_no_verdict_and_the_job_is_done_again(
    docker, tmp_path, monkeypatch, command, cause
):
    lost = []

    @contextlib.asynccontextmanager
    async def open_sandbox(wanted):
        async with docker.open(wanted) as sandbox:
            playing = asyncio.create_task(act(sandbox))
            yield sandbox
            await playing

    async def act(sandbox):
        wait = "until [ -e /tmp/asked ]; do sleep 0.05; done"
        with contextlib.suppress(Infrastructure):
            await sandbox.exec(["sh", "-c", wait], timeout_s=60)
            if not lost:
                lost.append(True)
                await command_relay(sandbox, command)
                if "STOP" in command:
                    monkeypatch.setattr(relay, "ANSWER_S", 0.3)
            await sandbox.exec(["touch", "/tmp/go"], timeout_s=60)

    async def scenario():
        job = Job(
            JobKind.SOLVE,
            "p",
            {"agent.toml": TOML, "agent.py": Entry(AGENT.encode())},
            {"a.txt": Entry(b"broken\n")},
            "python",
            "/work/repo",
            10.0,
        )
        async with gateway(tmp_path / "g") as opened:
            bench = SandboxWorkbench(open_sandbox, opened, ACTION, spec(), LimitSettings())
            with pytest.raises(Infrastructure, match=cause):
                await bench.work(job)
            monkeypatch.undo()
            return (await bench.work(job)).patch if "kill -9" in command else b"+mended"

    assert b"+mended" in asyncio.run(asyncio.wait_for(scenario(), 180))


def test_packages_are_shown_with_their_links_times_and_modes(inside: Inside, docker, tmp_path):
    (tmp_path / "lib").mkdir(mode=0o700)
    (tmp_path / "lib" / "tool").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "lib" / "tool").chmod(0o700)
    (tmp_path / "link").symlink_to("lib/tool")
    (tmp_path / "empty").mkdir()
    (tmp_path / "large").write_bytes(bytes(9_000_001))

    async def work(sandbox):
        look = "./link && wc -c <large && ls -d empty && stat -c %u:%a lib lib/tool && rm -rf lib; ls lib"
        return await sandbox.exec(["sh", "-c", f"exec 2>/dev/null; {look}"], timeout_s=60, cwd="/opt/shown")

    done = inside(work, mounts=[Mount(tmp_path, "/opt/shown")], memory_mb=32, disk_mb=16)
    assert done.output == b"ran\n9000001\nempty\n10002:755\n10002:755\ntool\n"
