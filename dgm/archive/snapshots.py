"""Folders as values: read an agent's files from disk, and write them out again.

All input may be hostile. Links are kept as links and never followed. Entries other than files, links and folders are
left out. Nothing is ever written outside the named folder.
"""

import hashlib
import io
import itertools
import os
import stat
import tarfile
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from dgm.domain import Entry, Snapshot
from dgm.errors import AgentFault, Infrastructure, UserError

FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000
MAX_FILES = 20_000
MAX_BYTES = 200_000_000
_MTIME = 1_700_000_000
"""Modification time of every file in a tar, so that equal snapshots give equal bytes."""
_LEFT_OUT = frozenset({"__pycache__", ".git"})
_FOLDER = 0o40000
_IGNORED_BY_HFS = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
"""Code points that some file systems drop from names: ``.g\\u200cit`` is ``.git`` there."""


class _Collector:
    """A collection of entries that raises as soon as they are too many or too large."""

    def __init__(self, limit_bytes: int) -> None:
        self.files: dict[str, Entry] = {}
        self._limit = limit_bytes
        self._bytes = 0

    def check(self, name: str, size: int) -> None:
        self._bytes += size + len(name)
        if self._bytes > self._limit:
            raise AgentFault("size", f"more than {self._limit} bytes of files")
        if len(self.files) >= MAX_FILES:
            raise AgentFault("size", f"more than {MAX_FILES} files")

    def add(self, name: str, entry: Entry) -> None:
        self.files[name] = entry


def to_tar(files: Snapshot, *, uid: int = 0, gid: int = 0) -> bytes:
    """Return a tar of the snapshot; equal snapshots give equal bytes."""
    buffer = io.BytesIO()
    with tarfile.open(
        fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
    ) as tar:
        for name in sorted(files):
            entry = files[name]
            member = tarfile.TarInfo(check_name(name))
            member.uid, member.gid, member.mtime = uid, gid, _MTIME
            if entry.mode == LINK:
                member.type, member.mode = tarfile.SYMTYPE, 0o777
                member.linkname = os.fsdecode(entry.data)
                tar.addfile(member)
            else:
                member.mode, member.size = entry.mode & 0o777, len(entry.data)
                tar.addfile(member, io.BytesIO(entry.data))
    return buffer.getvalue()


def from_folder(folder: Path, *, limit_bytes: int = MAX_BYTES) -> Snapshot:
    """Read a folder on this machine; ``.git`` and ``__pycache__`` are left out at any depth.

    Raises:
        AgentFault: stage ``size``: too large, or too many files.
        UserError: the path is not a folder, or cannot be read.
    """
    if not folder.is_dir():
        raise UserError(f"{folder}: not a folder")
    found = _Collector(limit_bytes)
    try:
        for name, path in _walk_files(folder):
            _read(name, path, found)
    except OSError as error:
        raise UserError(f"{error.filename or folder}: cannot be read: {error.strerror}") from error
    return found.files


def from_names(folder: Path, names: Iterable[str], *, limit_bytes: int = MAX_BYTES) -> Snapshot:
    """Read the named files below a folder; anything but files and links is left out.

    Raises:
        AgentFault: stage ``size``: more than ``limit_bytes``, or more than ``MAX_FILES`` files.
    """
    found = _Collector(limit_bytes)
    for name in sorted(set(names)):
        path = folder / name
        if path.is_symlink() or path.is_file():
            _read(check_name(name), path, found)
    return found.files


def write_folder(files: Snapshot, folder: Path) -> None:
    """Write the snapshot below ``folder`` (created if missing), replacing files of the same names.

    Raises:
        UserError: a name leads outside, or a part of it is a link or a file where a folder is needed, or two names
            are one for this disk.
        Infrastructure: the disk is full or failing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        written: dict[str, str] = {}
        for name in sorted(files):
            key = unicodedata.normalize("NFC", check_name(name)).casefold()
            if key in written and _is_same_file(root, written[key], name):
                raise UserError(
                    f"{folder}: this disk takes {written[key]!r} and {name!r} for one file: use one that does not"
                )
            _write(root, name, files[name])
            written[key] = name
    except (NotADirectoryError, IsADirectoryError) as error:
        raise UserError(f"{folder}: {name!r} would be written through a link or over a folder") from error
    except OSError as error:
        raise Infrastructure(error.errno, f"cannot write {folder}/{name}: {error.strerror}") from error
    finally:
        os.close(root)


def _is_same_file(root: int, one: str, other: str) -> bool:
    try:
        first, second = (os.stat(name, dir_fd=root, follow_symlinks=False) for name in (one, other))
    except FileNotFoundError:
        return False
    return os.path.samestat(first, second)


def check_name(name: str) -> str:
    """Return the name if a snapshot may hold it.

    Raises:
        UserError: the name is absolute, empty, or has a part that is empty, ``.`` or ``..``.
    """
    if "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise UserError(f"{name!r} is not the name of a file in a folder")
    return name


def _walk_files(folder: Path) -> Iterator[tuple[str, Path]]:
    waiting = [("", folder)]
    while waiting:
        prefix, current = waiting.pop()
        for item in sorted(os.scandir(current), key=lambda item: item.name):
            if item.name in _LEFT_OUT:
                continue
            if item.is_dir(follow_symlinks=False):
                waiting.append((f"{prefix}{item.name}/", Path(item.path)))
            else:
                yield prefix + item.name, Path(item.path)


def _read(name: str, path: Path, found: _Collector) -> None:
    info = path.lstat()
    if stat.S_ISLNK(info.st_mode):
        target = os.fsencode(path.readlink())
        found.check(name, len(target))
        found.add(name, Entry(target, LINK))
    elif stat.S_ISREG(info.st_mode):
        found.check(name, info.st_size)
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123  (a descriptor, so that no link is followed)
            data = file.read(info.st_size + 1)
        found.add(name, Entry(data, PROGRAM if info.st_mode & 0o100 else FILE))


def _write(root: int, name: str, entry: Entry) -> None:
    *folders, last = name.split("/")
    here = os.dup(root)
    try:
        for part in folders:
            below = _open_subfolder(here, part)
            os.close(here)
            here = below
        with suppress(FileNotFoundError):
            os.unlink(last, dir_fd=here)
        if entry.mode == LINK:
            os.symlink(entry.data, os.fsencode(last), dir_fd=here)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(last, flags, entry.mode & 0o777, dir_fd=here)
        with open(descriptor, "wb") as file:  # noqa: PTH123  (a descriptor, so that no link is followed)
            file.write(entry.data)
    finally:
        os.close(here)


def _open_subfolder(here: int, part: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(part, 0o755, dir_fd=here)
    # Opening a link fails with ENOTDIR here, because a folder is requested and links are not followed.
    return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)


def storable(files: Snapshot) -> Snapshot:
    """Return the snapshot as git stores it: modes are git's, and nothing is named ``.git`` or lies in one.

    This includes any spelling that some file system treats as ``.git`` (case, trailing dots and spaces, ``git~1``).

    Raises:
        UserError: a name is invalid in a folder, or is both a file and a folder; or an entry is no file and no link.
    """
    stored = {
        check_name(name): _with_gits_mode(name, entry)
        for name, entry in files.items()
        if not is_git_name(name)
    }
    for name in stored:
        for folder in _folders_of(name):
            if folder in stored:
                raise UserError(f"{folder!r} is both a file and a folder")
    return stored


def _with_gits_mode(name: str, entry: Entry) -> Entry:
    if entry.mode in (FILE, PROGRAM, LINK):
        return entry
    if not stat.S_ISREG(entry.mode):
        raise UserError(f"{name!r} is neither a file nor a link (mode {entry.mode:o})")
    return Entry(entry.data, PROGRAM if entry.mode & 0o100 else FILE)


def is_git_name(name: str) -> bool:
    """Return whether a name is ``.git``, or lies in one, on some file system."""
    parts = name.replace("\\", "/").translate(_IGNORED_BY_HFS).casefold().split("/")
    return any(part.split(":", 1)[0].rstrip(". ") in (".git", "git~1") for part in parts)


def _folders_of(name: str) -> Iterator[str]:
    return itertools.accumulate(name.split("/")[:-1], "{}/{}".format)


def object_id(kind: str, data: bytes) -> str:
    """Return the id that git gives an object. It is SHA-1: it protects against damage, not against forgery."""
    return hashlib.sha1(b"%b %d\0%b" % (kind.encode(), len(data), data), usedforsecurity=False).hexdigest()


def tree_id(files: Snapshot) -> str:
    """Return the id that git gives the content of a snapshot; raises like ``storable``."""
    return _tree_id(sorted((os.fsencode(name), entry) for name, entry in storable(files).items()))


def _tree_id(files: Sequence[tuple[bytes, Entry]]) -> str:
    tree = b""
    # Git sorts a folder by its name with a slash, and so do complete paths.
    for part, group in itertools.groupby(files, lambda file: file[0].partition(b"/")[0]):
        below = [(name[len(part) + 1 :], entry) for name, entry in group]
        mode, entry_id = (
            (_FOLDER, _tree_id(below))
            if below[0][0]
            else (below[0][1].mode, object_id("blob", below[0][1].data))
        )
        tree += b"%o %b\0%b" % (mode, part, bytes.fromhex(entry_id))
    return object_id("tree", tree)
