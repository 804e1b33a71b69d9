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
_UNPACK = 'umask 022; head -c "$2" | tar -x -p -f - -C "$1"'
_UNPACK_S = 300.0
_SAID_BYTES = 2000
_TAR_END = b"\0" * 2 * tarfile.BLOCKSIZE


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
        return [_pack_once(mount) if mount.digest else _pack(mount) for mount in mounts]
    except OSError as error:
        raise Infrastructure(f"cannot read what a sandbox is shown: {error}") from error


async def unpack(programs: ContainerPrograms, user: str, path: str, shown: ShownFolder) -> None:
    """Unpack a folder inside, as the user who owns its place.

    Raises:
        Infrastructure: it cannot be unpacked; the message quotes tar.
    """
    output = Output(_SAID_BYTES)
    argv = ["sh", "-c", _UNPACK, "unpack", shown.target, str(len(shown.stream))]
    program = Program(argv, user, {"PATH": path, "LANG": "C.UTF-8"})
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
    for header, content in _read_entries(mount.source):
        stream.write(_tar_entry(header, content))
        entries += 1
        size += -(-len(content) // _PAGE_BYTES) * _PAGE_BYTES
    stream.write(_TAR_END)
    room = entries + _SPARE
    return ShownFolder(mount.target, stream.getvalue(), size + room * _PAGE_BYTES, room)


def stream_folder(folder: Path) -> Iterator[bytes]:
    """Yield a folder as a tar stream, as ``pack_folders`` packs it; at no time is all of it in memory."""
    for header, content in _read_entries(folder):
        yield _tar_entry(header, content)
    yield _TAR_END


def _read_entries(top: Path) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    for name, path in _walk(top):
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
        yield header, content


def _tar_entry(header: tarfile.TarInfo, content: bytes) -> bytes:
    padding = b"\0" * (-len(content) % tarfile.BLOCKSIZE)
    return header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape") + content + padding


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
