"""Strangers' files and folders as data: nothing outside of the folder is opened, and what is read is bounded.

Pipes, sockets and devices are never opened. Links are resolved step by step, so that not even the place that a link
leads to is looked at before it is known to lie below the folder. Writing is left to ``dgm.archive.snapshots``.

``docker_context`` follows a ``.dockerignore`` by the rules of Docker's documentation. The last pattern that matches a
file, or a folder above it, decides; ``!`` takes it in again. ``**`` stands for any number of folders.
"""

import os
import posixpath
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from dgm.domain import Entry, Snapshot
from dgm.errors import UserError

FILE_BYTES = 16_000_000
"""Largest single text file that is read."""
FOLDER_BYTES = 1_000_000_000
FOLDER_FILES = 100_000
MAX_LINKS = 40
"""Links on the way to one file, as in Linux."""
MOST_PATTERNS, MOST_PARTS = 500, 2000
"""Maximum numbers of a ``.dockerignore``."""
RULES = ".dockerignore"
_ESCAPED = re.compile(r"\\(.)")
IGNORED = frozenset({"__pycache__", ".git"})
FILE, PROGRAM, LINK = 0o100644, 0o100755, 0o120000


def read_file(file: Path, limit_bytes: int = FILE_BYTES) -> bytes:
    """Return the content of an ordinary file.

    Raises:
        UserError: it is missing, unreadable, larger than ``limit_bytes``, or a pipe, a socket, a device or a folder.
    """
    try:
        # Opening a device may have an effect, so the kind is checked before and after.
        _check_ordinary(file, file.stat().st_mode)
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with open(descriptor, "rb") as opened:  # noqa: PTH123  (a descriptor, so that no pipe is waited for)
            info = os.fstat(descriptor)
            _check_ordinary(file, info.st_mode)
            # Python reserves what it is asked for; a file may grow meanwhile.
            data = opened.read(min(limit_bytes, max(info.st_size, 1 << 16)) + 1)
    except FileNotFoundError as error:
        raise UserError(f"{file}: missing") from error
    except (OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
    if len(data) > limit_bytes:
        raise UserError(f"{file}: larger than {limit_bytes:,} bytes, the limit for such a file")
    return data


def read_below(folder: Path, name: str, limit_bytes: int = FILE_BYTES) -> bytes:
    """Return the content of a file below the folder; links that stay below it are followed.

    Raises:
        UserError: it leads out of the folder, or as ``read_file``.
    """
    return read_file(resolve_below(folder, name), limit_bytes)


def resolve_below(folder: Path, name: str) -> Path:
    """Return the place of ``name`` below the folder with all links on the way resolved; it need not exist.

    Raises:
        UserError: the name or a link leads out of the folder, or the links have no end.
    """
    parts: list[str] = []
    if name.startswith("/") or "\0" in name:
        raise _outside(folder, name)
    remaining = _parts(name)
    links = 0
    while remaining:
        part = remaining.pop()
        if part == "..":
            if not parts:
                raise _outside(folder, name)
            parts.pop()
            continue
        target = _link_target(folder.joinpath(*parts, part))
        if target is None:
            parts.append(part)
            continue
        links += 1
        if target.startswith("/") or links > MAX_LINKS:
            raise _outside(folder, name)
        remaining += _parts(target)
    return folder.joinpath(*parts)


def list_files(folder: Path, skip: str = "") -> list[str]:
    """Return the names of the files and links below the folder, sorted, without bytecode and ``.git``.

    Args:
        folder: the folder.
        skip: pattern of paths of folders that are left out, as ``fnmatch`` has it.

    Raises:
        UserError: a link leads out of the folder; there is something else than files, links and folders; a part cannot
            be read; or there is too much of it.
    """
    names: list[str] = []
    left_bytes = FOLDER_BYTES
    for name, info in _walk(folder, skip):
        if stat.S_ISLNK(info.st_mode):
            resolve_below(folder, name)
        elif not stat.S_ISREG(info.st_mode):
            raise UserError(
                f"{folder / name}: neither a file nor a folder (a pipe, socket or device); remove it"
            )
        names.append(name)
        left_bytes -= info.st_size
        if left_bytes < 0 or len(names) > FOLDER_FILES:
            raise UserError(
                f"{folder}: more than {FOLDER_FILES:,} files or {FOLDER_BYTES:,} bytes; make it smaller"
            )
    return sorted(names)


def read_entry(folder: Path, name: str) -> Entry:
    """Return a file or link that ``list_files`` names, a link as a link.

    Raises:
        UserError: it cannot be read.
    """
    path = folder / name
    target = _link_target(path)
    if target is not None:
        return Entry(os.fsencode(target), LINK)
    return Entry(read_file(path, FOLDER_BYTES), PROGRAM if os.access(path, os.X_OK) else FILE)


def read_folder(folder: Path) -> Snapshot:
    """Return all that ``list_files`` names, links as links; sorted by path.

    Raises:
        UserError: as ``list_files``.
    """
    return {name: read_entry(folder, name) for name in list_files(folder)}


def _check_ordinary(file: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "a pipe, socket or device"
        raise UserError(f"{file}: is {what}; expected a file")


def _walk(folder: Path, skip: str) -> Iterator[tuple[str, os.stat_result]]:
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        try:
            with os.scandir(folder / prefix) as items:
                for item in items:
                    info = item.stat(follow_symlinks=False)
                    is_folder = stat.S_ISDIR(info.st_mode)
                    if is_folder and item.name not in IGNORED and not fnmatchcase(prefix + item.name, skip):
                        waiting.append(f"{prefix}{item.name}/")
                    elif not is_folder and not item.name.endswith(".pyc"):
                        yield prefix + item.name, info
        except OSError as error:
            raise UserError(f"{folder / prefix}: cannot be read: {error.strerror or error}") from error


def _parts(name: str) -> list[str]:
    """Return the parts of a path, the last one first."""
    return [part for part in reversed(name.split("/")) if part not in ("", ".")]


def _link_target(path: Path) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115  (a Path would drop a trailing slash)
    except OSError:
        return None


def _outside(folder: Path, name: str) -> UserError:
    return UserError(f"{folder / name.lstrip('/')}: leads out of {folder}; put a copy of what it names there")


def docker_context(files: Snapshot, dockerfile: str = "Dockerfile") -> Snapshot:
    """Return the files of a folder that its Dockerfile may copy, and the Dockerfile itself.

    Raises:
        UserError: there are too many patterns.
    """
    rules = next((files[name] for name in (f"{dockerfile}{RULES}", RULES) if name in files), None)
    if rules is None:
        return files
    patterns = _read_patterns(rules.data.decode("utf-8-sig", "replace"))
    return {
        name: entry for name, entry in files.items() if name == dockerfile or not _is_ignored(name, patterns)
    }


Pattern = tuple[bool, tuple[str, ...]]
"""True for a pattern with ``!``, which takes files in again; and the parts of the pattern."""


def _read_patterns(text: str) -> Sequence[Pattern]:
    patterns = []
    for line in text.splitlines():
        again, plain = line.strip().startswith("!"), line.strip().removeprefix("!").strip()
        path = re.sub(r"(?:\*\*/)+", "**/", posixpath.normpath(plain).lstrip("/"))
        if plain and not line.startswith("#") and path not in (".", ""):
            patterns.append((again, tuple(map(_translate, path.split("/")))))
    if len(patterns) > MOST_PATTERNS or sum(len(parts) for _, parts in patterns) > MOST_PARTS:
        raise UserError(
            f"{RULES}: more than {MOST_PATTERNS} patterns, or {MOST_PARTS} folders in them; use fewer"
        )
    return patterns


def _translate(part: str) -> str:
    """Return a part of a pattern as ``fnmatch`` writes it."""
    negated = part.replace("[^", "[!")
    return _ESCAPED.sub(lambda match: f"[{match[1]}]" if match[1] in "*?[" else match[1], negated)


def _is_ignored(name: str, patterns: Sequence[Pattern]) -> bool:
    parts = tuple(name.split("/"))
    return next((not again for again, pattern in reversed(patterns) if _matches(parts, pattern)), False)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a pattern matches a path or one of the folders above it."""
    places = {0}
    for part in parts:
        for place in sorted(places):
            # Two stars may stand for no folder at all.
            while pattern[place] == "**" and place + 1 < len(pattern):
                place += 1
                places.add(place)
        stars = {place for place in places if pattern[place] == "**"}
        following = {place + 1 for place in places - stars if fnmatchcase(part, pattern[place])}
        if len(pattern) in following or len(pattern) - 1 in stars:
            return True
        places = stars | following
    return False
