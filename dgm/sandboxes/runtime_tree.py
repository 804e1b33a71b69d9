"""The file tree of an agent's own image, made to work below a folder beside another image's files.

An agent in Node.js works on tasks whose image has no Node.js: its own image's tree is shown read-only at ``FOLDER``.
Links are made relative, so that they stay in the tree. A program there needs the tree's own loader and libraries, for
the image's may be older or of another kind. So each command of the image has a small script in ``COMMANDS`` that
starts it with them, and leaves no variable behind that would lead other programs to them.
"""

import io
import posixpath
import re
import shlex
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, cast

from dgm.sandboxes.elf import HEAD_BYTES, Program, read_program

FOLDER = "/opt/dgm-runtime"
COMMANDS = f"{FOLDER}/.dgm/bin"
DEFAULT_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_OWN = ".dgm"
_LEFT_OUT = ("dev", "proc", "sys", "run", "tmp", "var/cache", "var/lib/apt", "usr/share/doc", "usr/share/man")
"""Folders without anything that a program needs to run."""
_CONFIGURED = re.compile(r"etc/ld\.so\.conf(\.d/[^/]+\.conf)?")
_USUAL = ("lib64", "usr/lib64", "lib", "usr/lib", "usr/local/lib")
_PYTHON = re.compile(r"((?:usr|usr/local)/lib)/(python3(?:\.\d+)?)")
_NAMES_ITSELF = (2, 33)
"""Version of GNU's C library from which its loader takes ``--argv0``."""
_LOADER_OF_OLD = re.compile(r"ld-(\d+)\.(\d+)\.so")
_LINKS = 20
"""Maximum number of links on the way to a file."""


@dataclass(slots=True)
class RuntimeTree:
    """One pass over an image's files; what it saw is known once the pass has ended."""

    path: Sequence[str] = DEFAULT_PATH
    """Folders of the image's commands, the first one first."""
    _links: dict[str, str] = field(default_factory=dict)
    """Link → its target, both relative to the top."""
    _programs: dict[str, Program] = field(default_factory=dict)
    _folders: set[str] = field(default_factory=set)
    _pythons: set[str] = field(default_factory=set)
    """Folders of Python's own library, and of Debian's packages for it."""
    _configured: list[str] = field(default_factory=list)

    def rewrite(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the tree as a tar stream, from the tar stream of a whole image in chunks.

        Raises:
            tarfile.TarError: they are no tar stream.
        """
        source = cast("IO[bytes]", _ChunkReader(chunks))
        with tarfile.open(fileobj=source, mode="r|") as archive:
            for member in archive:
                if _is_wanted(member):
                    yield from self._rewrite_member(archive, member)
        for name, content in self._commands().items():
            yield _entry(f"{_OWN}/bin/{name}", content.encode())
        for name, target in self._python_folders().items():
            yield _link(f"{_OWN}/lib/{name}", target)
        yield b"\0" * 2 * tarfile.BLOCKSIZE

    def _rewrite_member(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> Iterator[bytes]:
        name = _clean(member.name)
        if member.isdir():
            self._folders.add(name)
            if name.endswith("/python3/dist-packages"):
                self._pythons.add(posixpath.dirname(name))
        elif member.issym():
            self._links[name] = _clean(posixpath.join("/", posixpath.dirname(name), member.linkname))
        header = _header(member, name)
        if member.issym():
            header.linkname = posixpath.relpath("/" + self._links[name], "/" + posixpath.dirname(name))
        elif member.islnk():
            header.linkname = _clean(member.linkname)
            if header.linkname in self._programs:
                self._programs[name] = self._programs[header.linkname]
        yield _tobuf(header)
        if member.isreg():
            content = archive.extractfile(member)
            assert content is not None
            yield from self._read(name, member, content)
            yield b"\0" * (-member.size % tarfile.BLOCKSIZE)

    def _read(self, name: str, member: tarfile.TarInfo, content: IO[bytes]) -> Iterator[bytes]:
        head = content.read(HEAD_BYTES)
        if member.mode & 0o111:
            program = read_program(head)
            if program is not None:
                self._programs[name] = program
        if _CONFIGURED.fullmatch(name):
            lines = head.decode("utf-8", "replace").splitlines()
            self._configured += [_clean(line) for line in lines if line.startswith("/")]
        if posixpath.basename(name) == "os.py":
            self._pythons.add(posixpath.dirname(name))
        yield head
        while chunk := content.read(1 << 20):
            yield chunk

    def _commands(self) -> dict[str, str]:
        """Return command → script that starts it."""
        found: dict[str, str] = {}
        folders = {self._resolve(_clean(folder)): None for folder in self.path}
        for folder in folders:
            below = f"{folder}/" if folder else ""
            for path in sorted({*self._links, *self._programs}):
                name = path.removeprefix(below)
                if path.startswith(below) and "/" not in name and name not in found:
                    target = self._resolve(path)
                    if target in self._programs:
                        found[name] = self._script(name, target, self._programs[target])
        return found

    def _script(self, name: str, path: str, program: Program) -> str:
        own = shlex.quote(f"{COMMANDS}/{name}")
        file = shlex.quote(f"{FOLDER}/{path}")
        if program.interpreter:
            return f'#!/bin/sh\nexec {self._interpreter(program.interpreter)} {file} "$@"\n'
        if not program.loader:
            return f'#!/bin/sh\nexec {file} "$@"\n'
        loader = self._resolve(_clean(program.loader))
        libraries = shlex.quote(":".join(f"{FOLDER}/{folder}" for folder in self._library_folders(loader)))
        named = f"--argv0 {own} " if _names_itself(loader) else ""
        start = f"{FOLDER}/{shlex.quote(loader)} --library-path {libraries} {named}{file}"
        return f'#!/bin/sh\nexec {start} "$@"\n'

    def _interpreter(self, words: Sequence[str]) -> str:
        """Return the start of a script's command line; by its name, an interpreter has a script of its own."""
        program, *rest = words
        if posixpath.basename(program) == "env" and rest:
            program, *rest = rest[0].removeprefix("-S ").split()
        return " ".join([f"{COMMANDS}/{shlex.quote(posixpath.basename(program))}", *map(shlex.quote, rest)])

    def _library_folders(self, loader: str) -> list[str]:
        beside = posixpath.dirname(loader)
        folders = [*self._configured, beside, beside.removeprefix("usr/"), *_USUAL]
        known = [self._resolve(folder) for folder in folders]
        return list(dict.fromkeys(folder for folder in known if folder in self._folders))

    def _python_folders(self) -> dict[str, str]:
        """Return links by which a Python whose program is a script of ours finds its own library."""
        found = (match for match in map(_PYTHON.fullmatch, sorted(self._pythons)) if match)
        return {match[2]: f"../../{match[0]}" for match in found}

    def _resolve(self, path: str) -> str:
        """Return the path without links, within the tree."""
        for _ in range(_LINKS):
            parts = path.split("/")
            for length in range(1, len(parts) + 1):
                above = "/".join(parts[:length])
                if above in self._links:
                    path = _clean(posixpath.join(self._links[above], *parts[length:]))
                    break
            else:
                return path
        return path


def drop_top(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the contents of a folder as a tar stream, from a tar stream that has the folder itself on top."""
    source = cast("IO[bytes]", _ChunkReader(chunks))
    with tarfile.open(fileobj=source, mode="r|") as archive:
        for member in archive:
            name = _clean(member.name).partition("/")[2]
            if name and (member.isreg() or member.isdir() or member.issym()):
                header = _header(member, name)
                header.linkname = member.linkname
                content = archive.extractfile(member) if member.isreg() else None
                data = content.read() if content else b""
                yield _tobuf(header) + data + b"\0" * (-len(data) % tarfile.BLOCKSIZE)
    yield b"\0" * 2 * tarfile.BLOCKSIZE


def _is_wanted(member: tarfile.TarInfo) -> bool:
    name = _clean(member.name)
    if not name or any(name == folder or name.startswith(f"{folder}/") for folder in _LEFT_OUT):
        return False
    return member.isreg() or member.isdir() or member.issym() or member.islnk()


def _clean(path: str) -> str:
    """Return a path relative to the top, which nothing leaves."""
    return posixpath.normpath("/" + path).lstrip("/")


def _header(member: tarfile.TarInfo, name: str) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.type, header.mtime = member.type, int(member.mtime)
    header.size = member.size if member.isreg() else 0
    # Nothing is set-user-ID there, and everybody reads what its owner reads.
    header.mode = 0o755 if member.isdir() or member.mode & 0o111 else 0o644
    return header


def _entry(name: str, content: bytes) -> bytes:
    header = tarfile.TarInfo(name)
    header.size, header.mode = len(content), 0o755
    return _tobuf(header) + content + b"\0" * (-len(content) % tarfile.BLOCKSIZE)


def _link(name: str, target: str) -> bytes:
    header = tarfile.TarInfo(name)
    header.type, header.linkname = tarfile.SYMTYPE, target
    return _tobuf(header)


def _tobuf(header: tarfile.TarInfo) -> bytes:
    return header.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def _names_itself(loader: str) -> bool:
    old = _LOADER_OF_OLD.fullmatch(posixpath.basename(loader))
    return old is None or (int(old[1]), int(old[2])) >= _NAMES_ITSELF


class _ChunkReader(io.RawIOBase):
    """A stream of chunks as a file that is read once."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        """Return true."""
        return True

    def read(self, size: int | None = -1) -> bytes:
        """Return at most ``size`` bytes; fewer only at the end."""
        wanted = size if size is not None and size >= 0 else None
        parts = [self._rest]
        length = len(self._rest)
        while wanted is None or length < wanted:
            chunk = next(self._chunks, b"")
            if not chunk:
                break
            parts.append(chunk)
            length += len(chunk)
        whole = b"".join(parts)
        kept = whole if wanted is None else whole[:wanted]
        self._rest = b"" if wanted is None else whole[wanted:]
        return kept
