"""Measurements of this machine's sandboxes: rows for ``dgm doctor``, each from a real probe sandbox."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from dgm.errors import DgmError, UserError
from dgm.protocols import Completed, Sandbox, SandboxEngine, SandboxSpec, SharedSocket
from dgm.sandboxes import cgroups, recipes
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.choose import open_kind
from dgm.sandboxes.docker import DockerEngine

_PROBE_S = 30.0
_PIDS, _MEMORY_MB = 32, 128
FILL_BUFFERS = """
import socket
sent, kept = 0, []
listener = socket.create_server(("127.0.0.1", 0))
while sent < %d and len(kept) < 900:
    pair = [socket.create_connection(listener.getsockname()), listener.accept()[0]]
    kept += pair
    for end in pair:
        end.setblocking(False)
        try:
            while True:
                sent += end.send(bytes(1 << 18))
        except BlockingIOError:
            pass
print(sent)
"""
"""Program that fills the buffers of TCP connections with itself."""
_FORKS = """
import os, time
n = 0
try:
    while n < 200:
        if not os.fork():
            time.sleep(5)
            os._exit(0)
        n += 1
except OSError:
    pass
print(n)
"""


_SOCKET = "/run/dgm/probe.sock"
_ASK = f"""
import socket
with socket.socket(socket.AF_UNIX) as near:
    near.settimeout(20)
    near.connect("{_SOCKET}")
    near.sendall(b"hello\\n")
    print(near.recv(100).decode().strip())
"""


@dataclass(frozen=True, slots=True)
class DiagnosisRow:
    """One row of a diagnosis."""

    name: str
    ok: bool
    detail: str
    """The finding; when not ``ok``, also the remedy."""


BOUNDS = ("forks bounded", "memory bounded")
"""Names of the checks that a person may do without."""


def is_fit(rows: Iterable[DiagnosisRow], name: str, *, unbounded: bool) -> bool:
    """Return whether the rows say that a search can run in sandboxes of the engine called ``name``.

    Args:
        rows: of all engines.
        name: of one engine.
        unbounded: whether a person accepts that processes and memory are not bounded.
    """
    accepted = {f"{name}: {check}" for check in BOUNDS} if unbounded else set()
    own = [row for row in rows if row.name.startswith(f"{name}: ") and row.name not in accepted]
    return bool(own) and all(row.ok for row in own)


async def probe(name: str) -> list[DiagnosisRow]:
    """Return checks of the engine called ``name``; start a sandbox, and build its image if necessary."""
    try:
        engine = open_kind(name)
        rows = [DiagnosisRow(f"{engine.name}: engine", ok=True, detail=_version(engine))]
        async with _open_socket() as shared, engine.open(_probe_spec(shared)) as sandbox:
            rows += [await check(engine.name, sandbox) for check in (_seccomp, _identity, _network, _reach)]
            rows += [await _forks(engine.name, sandbox), await _memory(engine, sandbox)]
            rows += [await _buffers(engine, sandbox)]
    except DgmError as error:
        return [DiagnosisRow(f"{name}: engine", ok=False, detail=str(error))]
    return rows


def _probe_spec(shared: SharedSocket) -> SandboxSpec:
    return SandboxSpec(image="python", pids=_PIDS, memory_mb=_MEMORY_MB, socket=shared)


@contextlib.asynccontextmanager
async def _open_socket() -> AsyncIterator[SharedSocket]:
    """Answer at a socket, as the gateway does; the folder is one whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="dgm-probe-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        path = Path(folder, "probe.sock")
        async with await asyncio.start_unix_server(_echo, path):
            path.chmod(0o666)
            yield SharedSocket(path, _SOCKET)


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, ValueError):
        writer.write(await reader.readline())
        await writer.drain()
    writer.close()


def probe_images() -> list[DiagnosisRow]:
    """Return checks whether bubblewrap and the images of recipes are there."""
    rows = []
    found = shutil.which("bwrap")
    rows.append(DiagnosisRow("bwrap", found is not None, found or "install the package 'bubblewrap'"))
    try:
        engine = open_kind("docker")
    except UserError as error:
        return [*rows, DiagnosisRow("images", ok=False, detail=str(error))]
    assert isinstance(engine, DockerEngine)
    there = engine.task_images.list_recipes()
    for name in recipes.names():
        tag = recipes.load(name).tag
        rows.append(
            DiagnosisRow(
                f"image {name}", tag in there, tag if tag in there else f"run: dgm sandbox build {name}"
            )
        )
    return rows


def _version(engine: SandboxEngine) -> str:
    match engine:
        case DockerEngine():
            facts = engine.facts
            kind = "Podman, " if facts.is_podman else ""
            return f"{kind}version {facts.version} for {facts.machine} at {engine.address}"
        case BubblewrapEngine():
            return f"bounds by {engine.bounds}"
        case _:
            return engine.name


async def _python(sandbox: Sandbox, code: str) -> Completed:
    return await sandbox.exec(["python3", "-c", code], timeout_s=_PROBE_S)


async def _seccomp(name: str, sandbox: Sandbox) -> DiagnosisRow:
    done = await sandbox.exec(["grep", "^Seccomp:", "/proc/self/status"], timeout_s=_PROBE_S)
    # 2: a filter judges each call.
    is_filtered = done.output.split() == [b"Seccomp:", b"2"]
    detail = "a filter judges each system call" if is_filtered else "no filter judges system calls"
    return DiagnosisRow(f"{name}: seccomp", is_filtered, detail)


async def _identity(name: str, sandbox: Sandbox) -> DiagnosisRow:
    done = await sandbox.exec(["sh", "-c", "id -u; grep CapBnd /proc/self/status"], timeout_s=_PROBE_S)
    said = " ".join(done.output.decode("utf-8", "replace").split())
    return DiagnosisRow(
        f"{name}: unprivileged", not said.startswith("0 ") and said.endswith("0" * 16), f"uid {said}"
    )


async def _network(name: str, sandbox: Sandbox) -> DiagnosisRow:
    done = await sandbox.exec(["sh", "-c", "tail -n +3 /proc/net/dev | cut -d: -f1"], timeout_s=_PROBE_S)
    devices = done.output.decode("utf-8", "replace").split()
    return DiagnosisRow(f"{name}: no network", devices == ["lo"], f"devices: {', '.join(devices)}")


async def _reach(name: str, sandbox: Sandbox) -> DiagnosisRow:
    done = await _python(sandbox, _ASK)
    said = done.output.decode("utf-8", "replace").strip()
    last = said.rpartition("\n")[2]
    detail = "a request from inside is answered" if said == "hello" else f"no answer from inside: {last}"
    return DiagnosisRow(f"{name}: gateway reached", said == "hello", detail)


async def _forks(name: str, sandbox: Sandbox) -> DiagnosisRow:
    done = await _python(sandbox, _FORKS)
    count = done.output.decode("utf-8", "replace").strip()
    ok = count.isdigit() and int(count) <= _PIDS + 4
    return DiagnosisRow(f"{name}: forks bounded", ok, f"{count} of {_PIDS} allowed")


async def _memory(engine: SandboxEngine, sandbox: Sandbox) -> DiagnosisRow:
    done = await _python(sandbox, f"x = bytearray({_MEMORY_MB * 4} * 1024 * 1024); print('survived')")
    ok = b"survived" not in done.output
    ended = "killed" if done.out_of_memory else "refused"
    return DiagnosisRow(
        f"{engine.name}: memory bounded", ok, ended if ok else f"more than {_MEMORY_MB} MB were had"
    )


async def _buffers(engine: SandboxEngine, sandbox: Sandbox) -> DiagnosisRow:
    """Return what bounds the memory of socket buffers; a search can live with a machine where nothing does."""
    done = await _python(sandbox, FILL_BUFFERS % (2 * _MEMORY_MB * 1024 * 1024))
    sent = done.output.strip()
    bounded = not (sent.isdigit() and int(sent) > _MEMORY_MB * 1024 * 1024)
    version = 0 if isinstance(engine, BubblewrapEngine) and not engine.grouped else cgroups.version()
    return DiagnosisRow(
        f"{engine.name}: socket buffers", True, describe_buffers(version, tcp_bounded=bounded)
    )


def describe_buffers(version: int, *, tcp_bounded: bool) -> str:
    """Return what bounds socket buffers, and what would; ``version`` of the control groups, 0 without any."""
    match version, tcp_bounded:
        case 0, _:
            return "not bounded: an ordinary user's bubblewrap has no control group; use root or Docker"
        case 1, True:
            return "TCP's are bounded, UDP's are not: control groups of version 1 do not count them; version 2 does"
        case 1, False:
            return (
                "not bounded for TCP and UDP: control groups of version 1 do not count them; version 2 does"
            )
        case _, True:
            return "count as memory"
        case _:
            return "not bounded for TCP: its control group does not count them"
