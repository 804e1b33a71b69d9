"""Snapshots as tar streams: the one way in which files enter and leave a sandbox.

A stream that comes out of a sandbox is hostile. It is parsed in memory, never unpacked on the host's disk, and links
stay links.
"""

import io
import re
import stat
import tarfile
import time
from collections.abc import Iterable, Iterator

from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault

MAX_FILES = 20_000
_HEADER_BYTES = 2048
"""Bytes for one entry's header, padding and long name, when a stream is bounded by its content."""
_END = bytes(1024)
"""Two empty blocks end every tar stream."""
_EXECUTABLE, _REGULAR, _LINK = 0o100755, 0o100644, 0o120000


def pack(files: Snapshot) -> bytes:
    """Return a tar stream of the snapshot, in which every file is writable by its owner."""
    stream = io.BytesIO()
    now = int(time.time())
    with tarfile.open(
        fileobj=stream, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for name, entry in files.items():
            header = tarfile.TarInfo(name)
            header.mtime = now
            if stat.S_ISLNK(entry.mode):
                header.type = tarfile.SYMTYPE
                header.linkname = entry.data.decode("utf-8", "surrogateescape")
                archive.addfile(header)
            else:
                header.mode = stat.S_IMODE(entry.mode)
                header.size = len(entry.data)
                archive.addfile(header, io.BytesIO(entry.data))
    return stream.getvalue()


def stream_limit(limit_bytes: int) -> int:
    """Return the maximum bytes of a tar stream whose content is within the limits."""
    return limit_bytes + MAX_FILES * _HEADER_BYTES


def unpack(stream: bytes, limit_bytes: int) -> dict[str, Entry]:
    """Return the snapshot in a tar stream: files and links; devices, pipes and folders are left out.

    Raises:
        AgentFault: stage ``size``: more than ``limit_bytes``, or more than ``MAX_FILES`` files; stage ``get``: this is
            not a whole tar stream.
    """
    if not stream.endswith(_END):
        raise AgentFault("get", "what came out of the sandbox is not a whole tar stream: it has no end")
    files: dict[str, Entry] = {}
    size = 0
    for name, entry in _entries(stream):
        files[name] = entry
        size += len(entry.data)
        if size > limit_bytes:
            raise size_fault(limit_bytes)
        if len(files) > MAX_FILES:
            raise AgentFault("size", f"more than {MAX_FILES:,} files")
    return files


def size_fault(limit_bytes: int) -> AgentFault:
    """Return the error for a folder that exceeds its limit."""
    return AgentFault("size", f"more than {limit_bytes:,} bytes")


def exclude_arguments(exclude: Iterable[str]) -> list[str]:
    """Return the tests with which ``find`` leaves out the entries of exactly these names."""
    literal = (re.sub(r"([*?\[\\])", r"\\\1", name) for name in exclude)
    return [word for name in literal for word in ("!", "-name", name)]


def _entries(stream: bytes) -> Iterator[tuple[str, Entry]]:
    try:
        with tarfile.open(
            fileobj=io.BytesIO(stream), mode="r:", encoding="utf-8", errors="surrogateescape"
        ) as archive:
            for member in archive:
                name = member.name.removeprefix("./")
                if member.issym():
                    yield name, Entry(member.linkname.encode("utf-8", "surrogateescape"), _LINK)
                elif member.isreg():
                    content = archive.extractfile(member)
                    assert content is not None
                    mode = _EXECUTABLE if member.mode & stat.S_IXUSR else _REGULAR
                    yield name, Entry(content.read(), mode)
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise AgentFault("get", f"what came out of the sandbox is not a whole tar stream: {error}") from error
