"""Host folders that an engine with other files shows read-only: packed here, unpacked inside by a user of their own.

An agent can read them, and neither change them nor put something in their place: another user owns them.
"""

import io
import stat
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from dgm.errors import Infrastructure
from dgm.protocols import Mount
from dgm.sandboxes.confined import Output
from dgm.sandboxes.container_programs import ContainerPrograms, Program

_PAGE_BYTES = 4096
_SPARE = 64
"""Entries for which there is room beyond those that are packed."""
_UNPACK = 'umask 022; head -c "$2" | tar -x -p -f - -C "$1"'
_UNPACK_S = 300.0
_OUTPUT_BYTES = 2000


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
    packed = []
    for mount in mounts:
        stream = io.BytesIO()
        sizes = pack_folder(mount.source, stream)
        entries = len(sizes) + _SPARE
        pages = sum(-(-size // _PAGE_BYTES) for size in sizes) + entries
        packed.append(ShownFolder(mount.target, stream.getvalue(), pages * _PAGE_BYTES, entries))
    return packed


def pack_folder(folder: Path, stream: IO[bytes]) -> Sequence[int]:
    """Write the contents of a folder as a tar stream, as ``pack_folders`` does; return the bytes of each entry.

    Raises:
        Infrastructure: it cannot be read.
    """
    sizes: list[int] = []

    def admit(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        # Else a second name of a file would be packed as a hard link.
        archive.inodes.clear()  # type: ignore[attr-defined]
        if not (member.isreg() or member.isdir() or member.issym()):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = int(member.mtime)
        member.mode = 0o755 if member.isdir() or member.mode & stat.S_IXUSR else 0o644
        sizes.append(member.size)
        return member

    try:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name, filter=admit)
    except OSError as error:
        raise Infrastructure(f"cannot read what a sandbox is shown: {error}") from error
    return sizes


async def unpack(programs: ContainerPrograms, user: str, path: str, shown: ShownFolder) -> None:
    """Unpack a folder inside, as the user who owns its place.

    Raises:
        Infrastructure: it cannot be unpacked; the message quotes tar.
    """
    output = Output(_OUTPUT_BYTES)
    argv = ["sh", "-c", _UNPACK, "unpack", shown.target, str(len(shown.stream))]
    program = Program(argv, user, {"PATH": path, "LANG": "C.UTF-8"})
    exit_code = await programs.run(program, shown.stream, output, _UNPACK_S)
    if exit_code is None:
        raise Infrastructure(f"showing {shown.target} in a sandbox took more than {_UNPACK_S:.0f} s")
    if exit_code:
        reason = bytes(output.said or output.kept).decode("utf-8", "replace").strip().split("\n", 1)[0]
        raise Infrastructure(f"cannot show {shown.target} in a sandbox (exit code {exit_code}): {reason}")
