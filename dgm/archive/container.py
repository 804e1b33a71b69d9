"""The file format of a packed run: an xz-compressed tar whose first member is a manifest of the others.

Equal members give equal bytes. The input may be hostile. A member is accepted only in the order, size and checksum that
the manifest states. Its name must be one that a run's files have. Links, devices and extended headers in the stream
have no effect. ``unpacking`` decides how members become a run.
"""

import hashlib
import io
import json
import lzma
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from dgm import bounded_reading
from dgm.archive import traces
from dgm.bounded_reading import parse_json
from dgm.errors import ArchiveCorrupt, UserError

FORMAT = 1
SUFFIX = ".dgm"
MANIFEST = "manifest.json"
MEMBER = re.compile(
    r"(holdout/)?(run\.json|events\.db|agents\.git/(packed-refs|objects/pack/pack-[0-9a-f]{40}\.pack)"
    r"|traces/[0-9a-f]{2}/[0-9a-f]{62}\.z)"
)
"""Names that members may have."""
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
MAX_MEMBERS = 2_000_000
MAX_BYTES = 64_000_000_000
"""Maximum uncompressed size of all members together, in bytes."""
MAX_MANIFEST = 400_000_000
MAX_RATIO = 1000
"""Maximum size of the members in relation to the pack, beyond the first gigabyte."""
_FREE_BYTES = 1_000_000_000
_FREE_MANIFEST = 1_000_000
_DECOMPRESSOR_BYTES = 200_000_000
_BLOCK = 512
_PADDING = 2 * tarfile.RECORDSIZE
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class PackMember:
    """One file of a pack."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a pack: its version, its run and its members."""

    dgm: str
    """The dgm version that made the pack."""
    run: str
    """The run's name."""
    id: str
    counts: Mapping[str, int]
    replaced: Mapping[str, int]
    """Number of replaced places by placeholder."""
    members: tuple[PackMember, ...] = field(repr=False)

    def encoded(self) -> bytes:
        """Return the manifest as JSON."""
        body = {
            "format": FORMAT,
            "dgm": self.dgm,
            "run": {"id": self.id, "name": self.run},
            "counts": dict(self.counts),
            "replaced": dict(sorted(self.replaced.items())),
            "members": [[member.name, member.size, member.sha256] for member in self.members],
        }
        return json.dumps(body, indent=1, ensure_ascii=True).encode() + b"\n"


def describe_files(folder: Path, names: list[str]) -> tuple[PackMember, ...]:
    """Return the named files below a folder as members."""
    members = []
    for name in sorted(names):
        with (folder / name).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        members.append(PackMember(name, (folder / name).stat().st_size, digest))
    return tuple(members)


def write_container(target: Path, folder: Path, manifest: Manifest) -> None:
    """Write the pack of the manifest's members, which lie below ``folder``."""
    with (
        lzma.open(target, "wb", preset=6) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        head = manifest.encoded()
        tar.addfile(_make_header(MANIFEST, len(head)), io.BytesIO(head))
        for member in manifest.members:
            with (folder / member.name).open("rb") as file:
                tar.addfile(_make_header(member.name, member.size), file)


def _make_header(name: str, size: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mode, header.mtime = size, 0o644, 0
    return header


class ContainerReader:
    """An open pack. ``manifest`` is read on opening; ``members`` yields the rest once, in order."""

    def __init__(self, path: Path) -> None:
        """Open the file and read its manifest.

        Raises:
            UserError: there is no such file, it is no pack, or a newer dgm made it.
            ArchiveCorrupt: it is damaged.
        """
        self._path = path
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror}") from error
        try:
            self._stream = _XzReader(path, self._file)
            self.manifest = self._read_manifest()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def members(self) -> Iterator[tuple[PackMember, Iterator[bytes]]]:
        """Yield each member with its content in pieces; read them to the end before taking the next member.

        Raises:
            ArchiveCorrupt: a member differs from the manifest; the message names it.
        """
        for member in self.manifest.members:
            self._expect(member)
            yield member, self._content(member)
        if not self._stream.ends_with_zeros(_PADDING):
            raise self._wrong("it holds more than its manifest names")

    def _content(self, member: PackMember) -> Iterator[bytes]:
        digest, left = hashlib.sha256(), member.size
        while left:
            piece = self._stream.read_exactly(min(left, _CHUNK))
            left -= len(piece)
            digest.update(piece)
            yield piece
        self._stream.read_exactly(-member.size % _BLOCK)
        if digest.hexdigest() != member.sha256:
            raise self._wrong(f"{member.name}: its checksum differs: the file is damaged")

    def _expect(self, member: PackMember) -> None:
        try:
            found = self._next_header()
        except tarfile.HeaderError as error:
            raise self._wrong(f"{member.name}: no header before it ({error}): the file is damaged") from error
        if found.name != member.name or not found.isreg() or found.size != member.size:
            raise self._wrong(f"{found.name!r} is not what the manifest names here ({member.name})")

    def _next_header(self) -> tarfile.TarInfo:
        return tarfile.TarInfo.frombuf(self._stream.read_exactly(_BLOCK), "utf-8", "surrogateescape")

    def _read_manifest(self) -> Manifest:
        try:
            header = self._next_header()
        except tarfile.HeaderError as error:
            raise UserError(f"{self._path}: not a packed run ({error})") from error
        if header.name != MANIFEST or not header.isreg():
            raise UserError(f"{self._path}: not a packed run (its first member is not {MANIFEST})")
        # Checksums cannot be compressed below half their length: no true manifest is much larger than its pack.
        most = min(MAX_MANIFEST, _FREE_MANIFEST + 8 * self._path.stat().st_size)
        if not 0 <= header.size <= most:
            raise self._wrong(f"{MANIFEST}: larger than {most} bytes")
        data = self._stream.read_exactly(header.size)
        self._stream.read_exactly(-header.size % _BLOCK)
        try:
            body = parse_json(data, most_bytes=MAX_MANIFEST, most_values=6 * MAX_MEMBERS)
            version = int(body["format"])
            if version > FORMAT:
                raise UserError(
                    f"{self._path}: made by a newer dgm (format {version}, this one reads {FORMAT}); upgrade dgm"
                )
            return self._checked(_parse_manifest(body))
        except (KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
            raise self._wrong(f"{MANIFEST}: not what dgm wrote ({error!r})") from error
        except ValueError as error:
            if isinstance(error, UserError | ArchiveCorrupt):
                raise
            raise self._wrong(f"{MANIFEST}: not what dgm wrote ({error})") from error

    def _checked(self, manifest: Manifest) -> Manifest:
        if not NAME.fullmatch(manifest.run):
            raise self._wrong(f"{MANIFEST}: {manifest.run!r} is not the name of a run")
        names = [member.name for member in manifest.members]
        strange = next((name for name in names if not MEMBER.fullmatch(name)), None)
        if strange is not None:
            raise self._wrong(f"{MANIFEST}: {strange!r} is not a file of a run")
        if names != sorted(set(names)):
            raise self._wrong(f"{MANIFEST}: its members are not in order, each once")
        total = sum(member.size for member in manifest.members)
        most = min(MAX_BYTES, _FREE_BYTES + MAX_RATIO * self._path.stat().st_size)
        if len(names) > MAX_MEMBERS or total > most or any(m.size < 0 for m in manifest.members):
            raise self._wrong(f"more than {MAX_MEMBERS} members or {most} bytes are not unpacked")
        # Half a megabyte more than the content: zlib stores what it cannot compress.
        bounds = {".z": traces.MAX_BYTES + 500_000, ".json": bounded_reading.MAX_BYTES}
        large = [m.name for m in manifest.members if m.size > bounds.get(Path(m.name).suffix, MAX_BYTES)]
        if large:
            raise self._wrong(f"{large[0]}: larger than a run may have it")
        return manifest

    def _wrong(self, what: str) -> ArchiveCorrupt:
        return ArchiveCorrupt(f"{self._path}: {what}")


def _parse_manifest(body: Mapping[str, Any]) -> Manifest:
    return Manifest(
        str(body["dgm"]),
        str(body["run"]["name"]),
        str(body["run"]["id"]),
        {str(key): int(value) for key, value in body["counts"].items()},
        {str(key): int(value) for key, value in body["replaced"].items()},
        tuple(PackMember(str(name), int(size), str(digest)) for name, size, digest in body["members"]),
    )


class _XzReader:
    """An xz stream as a file. Memory is bounded, whatever size the stream claims to need."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_DECOMPRESSOR_BYTES)
        self._first = True

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer only at the end."""
        pieces: list[bytes] = []
        while size and not self._xz.eof:
            given = self._file.read(_CHUNK) if self._xz.needs_input else b""
            if self._xz.needs_input and not given:
                raise ArchiveCorrupt(f"{self._path}: it ends too early: the file is damaged")
            try:
                piece = self._xz.decompress(given, size)
            except lzma.LZMAError as error:
                if self._first:
                    raise UserError(f"{self._path}: not a packed run ({error})") from error
                raise ArchiveCorrupt(f"{self._path}: the file is damaged ({error})") from error
            self._first = self._first and not piece
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def ends_with_zeros(self, most: int) -> bool:
        """Return whether the stream and the file end here, except for at most ``most`` zero bytes."""
        rest = self.read(most + 1)
        return (
            len(rest) <= most
            and not rest.strip(b"\0")
            and not self._xz.unused_data
            and not self._file.read(1)
        )

    def read_exactly(self, size: int) -> bytes:
        """Return exactly ``size`` bytes."""
        data = self.read(size)
        if len(data) != size:
            raise ArchiveCorrupt(f"{self._path}: it ends too early: the file is damaged")
        return data
