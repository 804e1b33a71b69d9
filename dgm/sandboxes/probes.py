"""Measurements of this machine's sandboxes: rows for ``dgm doctor``, each from a real probe sandbox."""

import shutil
from dataclasses import dataclass

from dgm.errors import DgmError, UserError
from dgm.protocols import Completed, Sandbox, SandboxEngine, SandboxSpec
from dgm.sandboxes import bootstrap, recipes
from dgm.sandboxes.bubblewrap import BubblewrapEngine
from dgm.sandboxes.choose import EngineName, choose
from dgm.sandboxes.docker import DockerEngine

_PROBE_S = 30.0
_PIDS, _MEMORY_MB = 32, 128
_DOORS = """
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
opened = []
for name, family in (("AF_VSOCK", 40), ("AF_NETLINK", 16)):
    try:
        socket.socket(family, socket.SOCK_DGRAM)
        opened.append(name)
    except PermissionError:
        pass
    except OSError as error:
        opened.append(f"{name} ({error})")
libc.syscall(425, 1, 0)
if ctypes.get_errno() != 1:
    opened.append("io_uring")
print(", ".join(opened))
"""
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


@dataclass(frozen=True, slots=True)
class DiagnosisRow:
    """One row of a diagnosis."""

    name: str
    ok: bool
    detail: str
    """The finding; when not ``ok``, also the remedy."""


async def probe(name: EngineName) -> list[DiagnosisRow]:
    """Return checks of the engine called ``name``; start a sandbox, and build its image if necessary."""
    try:
        engine = choose(name)
        rows = [DiagnosisRow(f"{engine.name}: engine", ok=True, detail=_version(engine))]
        async with engine.open(SandboxSpec(image="python", pids=_PIDS, memory_mb=_MEMORY_MB)) as sandbox:
            rows += [await check(engine.name, sandbox) for check in (_seccomp, _identity, _network)]
            rows += [await _forks(engine.name, sandbox), await _memory(engine, sandbox)]
    except DgmError as error:
        return [DiagnosisRow(f"{name}: engine", ok=False, detail=str(error))]
    return rows


def probe_images() -> list[DiagnosisRow]:
    """Return checks whether images are there, or could be made without a registry."""
    rows = []
    obstacle = bootstrap.obstacle()
    rows.append(DiagnosisRow("debootstrap", not obstacle, obstacle or "can make images without a registry"))
    found = shutil.which("bwrap")
    rows.append(DiagnosisRow("bwrap", found is not None, found or "install the package 'bubblewrap'"))
    try:
        engine = choose("docker")
    except UserError as error:
        return [*rows, DiagnosisRow("images", ok=False, detail=str(error))]
    assert isinstance(engine, DockerEngine)
    there = engine.images()
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
            return f"version {engine.version()}"
        case BubblewrapEngine():
            return f"bounds by {engine.bounds}"
        case _:
            return engine.name


async def _python(sandbox: Sandbox, code: str) -> Completed:
    return await sandbox.exec(["python3", "-c", code], timeout_s=_PROBE_S)


async def _seccomp(name: str, sandbox: Sandbox) -> DiagnosisRow:
    done = await _python(sandbox, _DOORS)
    opened = done.output.decode("utf-8", "replace").strip()
    ok = done.exit_code == 0 and not opened
    return DiagnosisRow(
        f"{name}: seccomp", ok, "vsock, netlink and io_uring denied" if ok else f"not denied: {opened}"
    )


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
