"""The folders that a node keeps for its sandboxes, by the digest of their contents, within a bound of bytes.

A folder that a sandbox shows stays. Of the others, the one that was not used for the longest time goes first.
"""

import functools
import hashlib
import io
import os
import shutil
import tarfile
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dgm.errors import Infrastructure
from dgm.protocols import Mount
from dgm.sandboxes.shown_folders import pack_folders

_PAGE_BYTES = 4096


class PackedFolder(NamedTuple):
    """A folder of the head, packed for its nodes."""

    digest: str
    target: str
    """Absolute folder in the sandbox."""
    constant: bool
    stream: bytes
    """Its contents as a tar stream."""


def pack_for_nodes(mounts: Sequence[Mount]) -> list[PackedFolder]:
    """Pack folders and name them by their contents.

    Raises:
        Infrastructure: one cannot be read.
    """
    return [_pack_constant(mount) if mount.digest else _pack(mount) for mount in mounts]


def _pack(mount: Mount) -> PackedFolder:
    (shown,) = pack_folders([mount])
    return PackedFolder(
        hashlib.sha256(shown.stream).hexdigest(), mount.target, bool(mount.digest), shown.stream
    )


_pack_constant = functools.lru_cache(maxsize=2)(_pack)
"""A folder that never changes is packed once: thousands of files take a second."""


class FolderCache:
    """The cache below one folder, which holds nothing else. Not safe for use by several threads at once."""

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._folder = folder
        self._sizes: OrderedDict[str, int] = OrderedDict()
        """Digest → bytes on disk; the one used last is the last."""
        self._held: dict[str, set[str]] = {}
        """Sandbox → digests that it shows."""

    @property
    def size_bytes(self) -> int:
        """Bytes on disk."""
        return sum(self._sizes.values())

    def hold(self, sandbox: str, digest: str) -> Path | None:
        """Return a folder, which stays until ``release``; None if it is not here."""
        if digest not in self._sizes:
            return None
        self._sizes.move_to_end(digest)
        self._held.setdefault(sandbox, set()).add(digest)
        return self._folder / digest

    def store(self, sandbox: str, digest: str, stream: bytes) -> Path:
        """Unpack a folder and hold it for a sandbox.

        Raises:
            Infrastructure: the stream has another digest, or cannot be unpacked here.
        """
        if (found := self.hold(sandbox, digest)) is not None:
            return found
        if hashlib.sha256(stream).hexdigest() != digest:
            raise Infrastructure("a folder for sandboxes arrived damaged: its digest is another one")
        try:
            draft = Path(tempfile.mkdtemp(prefix="draft-", dir=self._folder))
            try:
                size = _unpack(stream, draft)
                draft.chmod(0o755)
                draft.replace(self._folder / digest)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        except (OSError, tarfile.TarError) as error:
            raise Infrastructure(f"a folder for sandboxes cannot be unpacked: {error}") from error
        self._sizes[digest] = size
        self._held.setdefault(sandbox, set()).add(digest)
        self.evict()
        return self._folder / digest

    def release(self, sandbox: str) -> None:
        """Let go of what a sandbox showed."""
        self._held.pop(sandbox, None)
        self.evict()

    def evict(self) -> None:
        """Remove folders that no sandbox shows, until the rest is within the bound."""
        held = frozenset().union(*self._held.values()) if self._held else frozenset()
        for digest in [each for each in self._sizes if each not in held]:
            if self.size_bytes <= self.limit_bytes:
                return
            del self._sizes[digest]
            shutil.rmtree(self._folder / digest, ignore_errors=True)


def _unpack(stream: bytes, folder: Path) -> int:
    """Unpack into an empty folder; return the bytes that it takes.

    Raises:
        Infrastructure: a path leads out of the folder.
    """
    size = 0
    with tarfile.open(fileobj=io.BytesIO(stream), encoding="utf-8", errors="surrogateescape") as archive:
        for member in archive:
            if member.name.startswith("/") or ".." in member.name.split("/"):
                raise Infrastructure(
                    f"a folder for sandboxes has a path that leads out of it: {member.name!r}"
                )
            path = folder / member.name
            content = archive.extractfile(member) if member.isreg() else None
            if member.isdir():
                path.mkdir(mode=0o755)
            elif member.issym():
                path.symlink_to(member.linkname)
            elif content is not None:
                with path.open("xb") as file:
                    shutil.copyfileobj(content, file)
                path.chmod(member.mode)
                # Python takes compiled files for valid by the time of their source.
                os.utime(path, (member.mtime, member.mtime))
            size += -(-member.size // _PAGE_BYTES) * _PAGE_BYTES + _PAGE_BYTES
    return size
