"""Packed runs (``.dgm``): an xz-compressed tar whose first member is a manifest of the others.

Equal members give equal bytes. The input may be hostile. A member is accepted only in the order, size and checksum
that the manifest states, and only under a name that a run's files have. Links, devices and extended headers have no
effect. ``dgm.archive.adopt`` then makes the run anew of what was in it.
"""

import hashlib
import io
import json
import lzma
import re
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dgm.archive.adopt import adopt
from dgm.archive.durable import make_runs_folder
from dgm.archive.lock import error_of_write
from dgm.bounded_reading import parse_json
from dgm.errors import ArchiveCorrupt, DgmError, UserError

FORMAT = 2
MANIFEST = "manifest.json"
MEMBER = re.compile(
    r"(holdout/|promotion/)?(run\.json|run\.db|agents\.git/objects/pack/pack-[0-9a-f]{40}\.pack"
    # Format 1, of the previous version:
    r"|events\.db|agents\.git/packed-refs|traces/[0-9a-f]{2}/[0-9a-f]{62}\.z)"
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


class PackMember(NamedTuple):
    """One file of a pack."""

    name: str
    size: Annotated[int, Field(ge=0)]
    sha256: str


class PackedRun(BaseModel):
    """Id and name of the run in a pack."""

    model_config = ConfigDict(frozen=True)
    id: str
    name: str


class Manifest(BaseModel):
    """The first member of a pack."""

    model_config = ConfigDict(frozen=True)
    format: int = FORMAT
    dgm: str
    """The dgm version that made the pack."""
    run: PackedRun
    counts: dict[str, int]
    """Numbers of events, agents and traces; those of the holdout evaluation begin with ``holdout_``."""
    replaced: dict[str, int]
    """Number of replaced places by placeholder."""
    members: tuple[PackMember, ...] = Field(repr=False)


def write_pack(target: Path, folder: Path, manifest: Manifest) -> None:
    """Write the pack of the manifest's members, which lie below ``folder``."""
    with (
        lzma.open(target, "wb", preset=6) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        head = json.dumps(manifest.model_dump(), indent=1, ensure_ascii=True).encode() + b"\n"
        tar.addfile(_make_header(MANIFEST, len(head)), io.BytesIO(head))
        for member in manifest.members:
            with (folder / member.name).open("rb") as file:
                tar.addfile(_make_header(member.name, member.size), file)


def _make_header(name: str, size: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mode, header.mtime = size, 0o644, 0
    return header


def unpack(file: Path, folder: Path) -> Manifest:
    """Unpack a run to ``folder``, which appears only after all checks.

    Raises:
        UserError: the folder exists, the file is not a packed run, or a newer dgm made it.
        ArchiveCorrupt: the file is damaged, or differs from its manifest; names the first fault.
        Infrastructure: the disk is full or failing.
    """
    folder = folder.resolve()
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(f"{folder}: already exists; choose another folder")
    make_runs_folder(folder.parent)
    try:
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.dgm.", dir=folder.parent) as scratch:
            content, draft = Path(scratch, "pack"), Path(scratch, "run")
            with PackReader(file) as packed:
                for member, pieces in packed.members():
                    path = content / member.name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    with path.open("xb") as target:
                        target.writelines(pieces)
            try:
                adopt(content, draft)
            except ArchiveCorrupt as error:
                text = str(error).replace(str(content), str(file)).replace(str(draft), str(file))
                raise ArchiveCorrupt(text) from error
            draft.replace(folder)
    except DgmError:
        raise
    except OSError as error:
        raise error_of_write(folder, error) from error
    return packed.manifest


def read_manifest(file: Path) -> Manifest:
    """Return the manifest of a packed run; raises like ``PackReader``."""
    with PackReader(file) as packed:
        return packed.manifest


def find_addresses(settings: object) -> Iterator[str]:
    """Yield the addresses of models and the variables of keys that a run's settings name: a resumed run uses them."""
    if isinstance(settings, dict):
        for name, value in settings.items():
            if name in ("base_url", "key_env") and value:
                yield str(value)
            else:
                yield from find_addresses(value)


class PackReader:
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
            try:
                header = self._next_header()
            except tarfile.HeaderError as error:
                raise self._corrupt(
                    f"{member.name}: no header before it ({error}): the file is damaged"
                ) from error
            if header.name != member.name or not header.isreg() or header.size != member.size:
                raise self._corrupt(f"{header.name!r} is not what the manifest names here ({member.name})")
            yield member, self._content(member)
        if not self._stream.ends_with_zeros(_PADDING):
            raise self._corrupt("it holds more than its manifest names")

    def _content(self, member: PackMember) -> Iterator[bytes]:
        digest, remaining = hashlib.sha256(), member.size
        while remaining:
            piece = self._stream.read_exactly(min(remaining, _CHUNK))
            remaining -= len(piece)
            digest.update(piece)
            yield piece
        self._stream.read_exactly(-member.size % _BLOCK)
        if digest.hexdigest() != member.sha256:
            raise self._corrupt(f"{member.name}: its checksum differs: the file is damaged")

    def _next_header(self) -> tarfile.TarInfo:
        # One block at a time: tarfile's own reader would follow extended headers of any size.
        return tarfile.TarInfo.frombuf(self._stream.read_exactly(_BLOCK), "utf-8", "surrogateescape")

    def _read_manifest(self) -> Manifest:
        try:
            header = self._next_header()
        except tarfile.HeaderError as error:
            raise UserError(f"{self._path}: not a packed run ({error})") from error
        if header.name != MANIFEST or not header.isreg():
            raise UserError(f"{self._path}: not a packed run (its first member is not {MANIFEST})")
        # Checksums cannot be compressed below half their length: no true manifest is much larger than its pack.
        limit = min(MAX_MANIFEST, _FREE_MANIFEST + 8 * self._path.stat().st_size)
        if not 0 <= header.size <= limit:
            raise self._corrupt(f"{MANIFEST}: larger than {limit} bytes")
        data = self._stream.read_exactly(header.size)
        self._stream.read_exactly(-header.size % _BLOCK)
        try:
            body = parse_json(data, most_bytes=MAX_MANIFEST, most_values=6 * MAX_MEMBERS)
            version = int(body["format"])
            if version <= FORMAT:
                return self._check(Manifest.model_validate(body))
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise self._corrupt(f"{MANIFEST}: not what dgm wrote ({field}: {first['msg']})") from error
        except (KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
            if isinstance(error, DgmError):
                raise
            raise self._corrupt(f"{MANIFEST}: not what dgm wrote ({error!r})") from error
        raise UserError(
            f"{self._path}: made by a newer dgm (format {version}, this one reads {FORMAT}); upgrade dgm"
        )

    def _check(self, manifest: Manifest) -> Manifest:
        if not NAME.fullmatch(manifest.run.name):
            raise self._corrupt(f"{MANIFEST}: {manifest.run.name!r} is not the name of a run")
        names = [member.name for member in manifest.members]
        unknown = next((name for name in names if not MEMBER.fullmatch(name)), None)
        if unknown is not None:
            raise self._corrupt(f"{MANIFEST}: {unknown!r} is not a file of a run")
        if names != sorted(set(names)):
            raise self._corrupt(f"{MANIFEST}: its members are not in order, each once")
        limit = min(MAX_BYTES, _FREE_BYTES + MAX_RATIO * self._path.stat().st_size)
        if len(names) > MAX_MEMBERS or sum(member.size for member in manifest.members) > limit:
            raise self._corrupt(f"more than {MAX_MEMBERS} members or {limit} bytes are not unpacked")
        return manifest

    def _corrupt(self, problem: str) -> ArchiveCorrupt:
        return ArchiveCorrupt(f"{self._path}: {problem}")


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
            data = self._file.read(_CHUNK) if self._xz.needs_input else b""
            if self._xz.needs_input and not data:
                raise ArchiveCorrupt(f"{self._path}: it ends too early: the file is damaged")
            try:
                piece = self._xz.decompress(data, size)
            except lzma.LZMAError as error:
                if self._first:
                    raise UserError(f"{self._path}: not a packed run ({error})") from error
                raise ArchiveCorrupt(f"{self._path}: the file is damaged ({error})") from error
            self._first = self._first and not piece
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)

    def read_exactly(self, size: int) -> bytes:
        """Return exactly ``size`` bytes."""
        data = self.read(size)
        if len(data) != size:
            raise ArchiveCorrupt(f"{self._path}: it ends too early: the file is damaged")
        return data

    def ends_with_zeros(self, limit: int) -> bool:
        """Return whether the stream and the file end here, except for at most ``limit`` zero bytes."""
        rest = self.read(limit + 1)
        ended = not self._xz.unused_data and not self._file.read(1)
        return ended and len(rest) <= limit and not rest.strip(b"\0")
