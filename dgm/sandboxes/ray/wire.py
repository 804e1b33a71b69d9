"""The values that cross between the head and its nodes: plain ones with a version, never objects of dgm.

What a node answers is checked as outside data is. Errors cross as values, too, and are raised at the other end.
"""

import functools
import hashlib
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from pydantic import TypeAdapter, ValidationError

import dgm
from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, DgmError, Infrastructure, UserError
from dgm.paths import asset
from dgm.protocols import Completed
from dgm.sandboxes.ray.image_plans import ImageDigests, ImagePlan

VERSION = 1
"""Version of the form of the values; a node with another version is not used."""
Record = dict[str, Any]
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HostedSpec:
    """The resources of a sandbox on a node; its folders are named by the node's paths."""

    image: str
    labels: Mapping[str, str]
    folders: tuple[tuple[str, str, str], ...]
    """Folder of the node, folder in the sandbox, and the name of its contents if they never change."""
    socket: tuple[str, str] | None
    """Socket of the node, and its path in the sandbox."""
    filled: Mapping[str, str]
    """Writable folder in the sandbox → the folder of the image that is copied into it."""
    cpus: float
    memory_mb: int
    pids: int
    disk_mb: int
    lifetime_s: float


@dataclass(frozen=True, slots=True)
class Command:
    """One command for a sandbox, with the bounds of ``Sandbox.exec``."""

    argv: tuple[str, ...]
    timeout_s: float
    cwd: str
    env: Mapping[str, str]
    stdin: bytes
    output_limit: int
    processor_s: float | None


@dataclass(frozen=True, slots=True)
class HeadSession:
    """The time for which a head uses a node."""

    ident: str
    """Random."""
    incarnation: int
    """Higher than that of every session before it; a node serves none that is older than one it has seen."""
    lease_s: float
    cache_bytes: int
    node_engine: str
    registry: str = ""
    """A registry to pull images of tasks from; empty: none."""
    images_bytes: int = 0
    """Disk of the images of tasks."""
    has_demand: bool = False
    """True if the head asks the cluster for room, which has to be withdrawn when it is silent."""


@dataclass(frozen=True, slots=True)
class NodeStock:
    """The images of tasks that a node has."""

    tags: tuple[str, ...]
    disk_bytes: int
    """Bytes of all, with common layers counted once; 0 where it was not asked for."""


@dataclass(frozen=True, slots=True)
class DoorKey:
    """Address and secret with which a node reaches a socket of the head."""

    host: str
    port: int
    link: bytes
    """Public name of the node's connection."""
    token: bytes
    """Secret of the node's connection."""
    certificate: str
    """In PEM format, the one that the head must show; empty: the connection is not encrypted."""


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node as its keeper describes it."""

    build: str
    """Digest of dgm's code and recipes on the node."""
    version: str
    """Version of dgm on the node."""
    engine: str
    """Name of the engine that opens its sandboxes; empty: none can."""
    problem: str
    """Why none can; empty if one can."""
    newest: int
    """Highest incarnation that it has seen; 0: none."""
    sandboxes: int
    cache_bytes: int
    cache_limit: int


_KINDS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        Completed,
        HostedSpec,
        Command,
        HeadSession,
        DoorKey,
        NodeFacts,
        NodeStock,
        ImagePlan,
        ImageDigests,
        str,
        int,
    )
}
_FILES, _FAULT, _INFRASTRUCTURE, _USER = "files", "agent fault", "infrastructure", "user"


_adapter_of: Callable[[Any], TypeAdapter[Any]] = functools.cache(TypeAdapter)
"""The adapter of a type; it takes milliseconds to make one."""


def encode(value: object) -> Record:
    """Return a value of one of the kinds as plain values."""
    kind = type(value).__name__
    return _record(kind, _adapter_of(_KINDS[kind]).dump_python(value))


def decode(record: object, kind: type[T]) -> T:
    """Return the value of a record.

    Raises:
        AgentFault: the record is one.
        UserError: the record is one.
        Infrastructure: the record is one, or is no value of this kind and version.
    """
    body = _body_of(record, kind.__name__)
    try:
        # Strictly, a table is no record; its fields are checked all the same.
        value: T = _adapter_of(kind).validate_python(body, strict=kind in (str, int))
    except ValidationError as error:
        raise Infrastructure(f"what came is no {kind.__name__}: {error.errors()[0]['msg']}") from error
    return value


def encode_files(files: Snapshot) -> Record:
    """Return a snapshot as plain values; paths as bytes, since they may be no text."""
    return _record(_FILES, [(os.fsencode(path), each.data, each.mode) for path, each in files.items()])


def decode_files(record: object) -> dict[str, Entry]:
    """Return the snapshot of a record; raise as ``decode``."""
    body = _body_of(record, _FILES)
    try:
        rows = _adapter_of(list[tuple[bytes, bytes, int]]).validate_python(body, strict=True)
    except ValidationError as error:
        raise Infrastructure(f"what came are no files: {error.errors()[0]['msg']}") from error
    return {os.fsdecode(path): Entry(data, mode) for path, data, mode in rows}


def encode_error(error: DgmError) -> Record:
    """Return an error as plain values; one that is neither an agent's nor a person's is the infrastructure's."""
    match error:
        case AgentFault(stage=stage, output=output):
            return _record(_FAULT, [stage, str(error), output])
        case UserError():
            return _record(_USER, str(error))
        case _:
            return _record(_INFRASTRUCTURE, str(error))


def answers(
    method: Callable[Concatenate[S, P], Awaitable[Record]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, Record]]:
    """Make a method of a node answer with a record whatever dgm raises on purpose."""

    async def answer(self: S, /, *args: P.args, **named: P.kwargs) -> Record:
        try:
            return await method(self, *args, **named)
        except DgmError as error:
            return encode_error(error)

    functools.update_wrapper(answer, method)
    return answer


@functools.cache
def build_digest() -> str:
    """Return a digest of dgm's code and recipes on this machine: with another one, verdicts would not compare."""
    found = hashlib.sha256()
    for top, pattern in ((Path(dgm.__file__).parent, "*.py"), (asset("sandboxes"), "*")):
        for path in sorted(top.rglob(pattern)):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(top)}\0{path.stat().st_size}\0".encode())
                found.update(path.read_bytes())
    return found.hexdigest()[:16]


def _record(kind: str, body: object) -> Record:
    return {"version": VERSION, "kind": kind, "body": body}


def _body_of(record: object, kind: str) -> object:
    if not isinstance(record, dict) or record.get("version") != VERSION:
        said = record.get("version") if isinstance(record, dict) else type(record).__name__
        raise Infrastructure(
            f"the other end speaks version {said} of dgm's values and this one {VERSION}: install the same dgm there"
        )
    match record.get("kind"), record.get("body"):
        case str(found), body if found == kind:
            return body
        case "agent fault", [str(stage), str(message), bytes(output)]:
            raise AgentFault(stage, message, output)
        case "user", str(message):
            raise UserError(message)
        case "infrastructure", str(message):
            raise Infrastructure(message)
        case found, _:
            raise Infrastructure(f"{kind} was expected, and {str(found)[:80]!r} came")
