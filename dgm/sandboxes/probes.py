"""Measurements of this machine's sandboxes: rows for ``dgm doctor``, each from a real probe sandbox."""

import contextlib
import json
import tempfile
from asyncio import StreamReader, StreamWriter, start_unix_server
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path

from dgm.errors import DgmError, UserError
from dgm.protocols import Completed, Sandbox, SandboxEngine, SandboxSpec, SharedSocket
from dgm.sandboxes import recipes
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.choose import open_kind
from dgm.sandboxes.docker import DockerEngine

_PROBE_S = 30.0
_PIDS, _MEMORY_MB = 32, 128
_SOCKET = "/run/dgm/probe.sock"
_CONFINED = """
import json, os
status = {name: value.strip() for name, _, value in (line.partition(":") for line in open("/proc/self/status"))}
devices = [line.split(":")[0].strip() for line in list(open("/proc/net/dev"))[2:]]
print(json.dumps([os.getuid(), status["CapBnd"], status["Seccomp"], devices]))
"""
_ASK = f"""
import socket
with socket.socket(socket.AF_UNIX) as near:
    near.settimeout(20)
    near.connect("{_SOCKET}")
    near.sendall(b"hello\\n")
    print(near.recv(100).decode().strip())
"""
_FORKS = """
import os, signal, time
children = []
try:
    while len(children) < 200:
        child = os.fork()
        if not child:
            time.sleep(5)
            os._exit(0)
        children.append(child)
except OSError:
    pass
print(len(children))
for child in children:
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""
_MEMORY = f"x = bytearray({_MEMORY_MB * 4} * 1024 * 1024); print('survived')"


@dataclass(frozen=True, slots=True)
class DiagnosisRow:
    """One row of a diagnosis."""

    name: str
    ok: bool
    detail: str
    """The observation; when not ``ok``, also the remedy."""


BOUNDS = ("forks bounded", "memory bounded")
"""Names of the checks that a user may do without."""


def is_fit(rows: Iterable[DiagnosisRow], name: str, *, unbounded: bool) -> bool:
    """Return whether the rows say that a search can run in sandboxes of the engine called ``name``.

    Args:
        rows: of all engines.
        name: of one engine.
        unbounded: whether the user accepts that processes and memory are not bounded.
    """
    accepted = {f"{name}: {check}" for check in BOUNDS} if unbounded else set()
    needed = [row for row in rows if row.name.startswith(f"{name}: ") and row.name not in accepted]
    return bool(needed) and all(row.ok for row in needed)


async def probe(name: str) -> list[DiagnosisRow]:
    """Return checks of the engine called ``name``; start a sandbox, and build its image if necessary."""
    try:
        engine = open_kind(name)
        rows = [DiagnosisRow(f"{engine.name}: engine", ok=True, detail=_describe(engine))]
        async with _open_socket() as shared, engine.open(_probe_spec(shared)) as sandbox:
            for check in (_confined, _reach, _forks, _memory):
                rows.append(await check(engine.name, sandbox))  # noqa: PERF401  (one after the other)
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
        async with await start_unix_server(_echo, path):
            path.chmod(0o666)
            yield SharedSocket(path, _SOCKET)


async def _echo(reader: StreamReader, writer: StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, ValueError):
        writer.write(await reader.readline())
        await writer.drain()
    writer.close()


def probe_images() -> list[DiagnosisRow]:
    """Return a row that says which recipes have their images in Docker; empty without Docker."""
    try:
        engine = open_kind("docker")
    except UserError:
        return []
    assert isinstance(engine, DockerEngine)
    tags = engine.task_images.list_recipes()
    names = recipes.names()
    built = [name for name in names if recipes.load(name).tag in tags]
    missing = [name for name in names if name not in built]
    detail = f"built: {', '.join(built) or 'none'}"
    later = "; others when first used" if missing else ""
    return [DiagnosisRow("docker images", ok=True, detail=detail + later)]


def _describe(engine: SandboxEngine) -> str:
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


async def _confined(name: str, sandbox: Sandbox) -> DiagnosisRow:
    done = await _python(sandbox, _CONFINED)
    row = f"{name}: confined"
    try:
        uid, capabilities, seccomp, devices = json.loads(done.output)
    except ValueError:
        return DiagnosisRow(row, False, f"python3 in the sandbox fails: {done.output[-200:]!r}")
    flaws = {
        "it runs as root": uid == 0,
        f"it has capabilities ({capabilities})": int(capabilities, 16) != 0,
        "no filter judges its system calls": seccomp != "2",
        f"it has network devices ({', '.join(devices)})": devices != ["lo"],
    }
    found = ", ".join(flaw for flaw, is_there in flaws.items() if is_there)
    return DiagnosisRow(
        row, not found, found or f"uid {uid}, no capability, system calls filtered, no network"
    )


async def _reach(name: str, sandbox: Sandbox) -> DiagnosisRow:
    done = await _python(sandbox, _ASK)
    last = done.output.decode("utf-8", "replace").strip().rpartition("\n")[2]
    reached = last == "hello"
    detail = "a request from inside is answered" if reached else f"no answer from inside: {last}"
    return DiagnosisRow(f"{name}: gateway reached", reached, detail)


async def _forks(name: str, sandbox: Sandbox) -> DiagnosisRow:
    done = await _python(sandbox, _FORKS)
    count = done.output.decode("utf-8", "replace").strip()
    ok = count.isdigit() and int(count) <= _PIDS + 4
    return DiagnosisRow(f"{name}: forks bounded", ok, f"{count} of {_PIDS} allowed")


async def _memory(name: str, sandbox: Sandbox) -> DiagnosisRow:
    done = await _python(sandbox, _MEMORY)
    ok = b"survived" not in done.output
    ended = "killed" if done.out_of_memory else "refused to each program, but not to all together"
    return DiagnosisRow(f"{name}: memory bounded", ok, ended if ok else f"more than {_MEMORY_MB} MB were had")
