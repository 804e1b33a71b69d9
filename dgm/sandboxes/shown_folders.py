"""Host folders that an engine with other files shows read-only: packed here, unpacked inside by the keeper.

An agent can read them, and neither change them nor put something in their place: another user owns them.
"""

import functools
import io
import os
import stat
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.errors import Infrastructure
from dgm.protocols import Mount
from dgm.sandboxes.confined import Output
from dgm.sandboxes.container_programs import ContainerPrograms, Program

_PAGE_BYTES = 4096
_SPARE = 64
"""Entries for which there is room beyond those that are packed."""
_UNPACK = 'umask 022; exec tar -x -p -f - -C "$1"'
_UNPACK_S = 300.0
_SAID_BYTES = 2000


@dataclass(frozen=True, slots=True)
class ShownFolder:
    """One packed folder."""

    target: str
    """Absolute folder in the sandbox."""
    stream: bytes
    """Its contents as a tar stream."""
    size_bytes: int
    """Bytes that it takes in memory."""
    entries: int
    """Files, folders and links that it may have."""


def pack_folders(mounts: Sequence[Mount]) -> list[ShownFolder]:
    """Pack host folders, with modes that let everybody read; what is no file, folder or link is left out.

    Raises:
        Infrastructure: one cannot be read.
    """
    try:
        return [_pack_once(mount) if mount.constant else _pack(mount) for mount in mounts]
    except OSError as error:
        raise Infrastructure(f"cannot read what a sandbox is shown: {error}") from error


async def unpack(programs: ContainerPrograms, user: str, path: str, shown: ShownFolder) -> None:
    """Unpack a folder inside, as the user who owns its place.

    Raises:
        Infrastructure: it cannot be unpacked; the message quotes tar.
    """
    output = Output(_SAID_BYTES)
    program = Program(["sh", "-c", _UNPACK, "unpack", shown.target], user, {"PATH": path, "LANG": "C.UTF-8"})
    exit_code = await programs.run(program, shown.stream, output, _UNPACK_S)
    if exit_code:
        said = bytes(output.said or output.kept).decode("utf-8", "replace").strip().split("\n", 1)[0]
        raise Infrastructure(f"cannot show {shown.target} in a sandbox (exit code {exit_code}): {said}")
    if exit_code is None:
        raise Infrastructure(f"showing {shown.target} in a sandbox took more than {_UNPACK_S:.0f} s")


@functools.lru_cache(maxsize=2)
def _pack_once(mount: Mount) -> ShownFolder:
    """Pack a folder that never changes; packing thousands of files takes a second for each sandbox."""
    return _pack(mount)


def _pack(mount: Mount) -> ShownFolder:
    stream = io.BytesIO()
    size = entries = 0
    with tarfile.open(
        fileobj=stream, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as archive:
        for name, path in _walk(mount.source):
            found = path.lstat()
            header = tarfile.TarInfo(name)
            header.mtime = int(found.st_mtime)
            header.mode = 0o755 if found.st_mode & stat.S_IXUSR else 0o644
            content = b""
            if stat.S_ISDIR(found.st_mode):
                header.type, header.mode = tarfile.DIRTYPE, 0o755
            elif stat.S_ISLNK(found.st_mode):
                header.type, header.linkname = tarfile.SYMTYPE, os.readlink(path)  # noqa: PTH115
            elif stat.S_ISREG(found.st_mode):
                content = path.read_bytes()
                header.size = len(content)
            else:
                continue
            archive.addfile(header, io.BytesIO(content))
            entries += 1
            size += -(-len(content) // _PAGE_BYTES) * _PAGE_BYTES
    room = entries + _SPARE
    return ShownFolder(mount.target, stream.getvalue(), size + room * _PAGE_BYTES, room)


def _walk(top: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the path of everything below ``top``, folders before their contents; follow no link."""
    if not top.is_dir():
        raise NotADirectoryError(f"{top} is no folder")
    for folder, folders, names in os.walk(top, onerror=_raise):
        folders.sort()
        for name in sorted([*folders, *names]):
            path = os.path.join(folder, name)  # noqa: PTH118  (several times as fast)
            yield os.path.relpath(path, top), Path(path)


def _raise(error: OSError) -> None:
    raise error
