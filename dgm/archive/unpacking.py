"""Conversion of a packed run into an ordinary one: checked while it is read, and never left incomplete."""

import hashlib
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path

from dgm.archive.container import ContainerReader, Manifest, PackMember
from dgm.archive.durable import make_runs_folder
from dgm.archive.finding import archive_folders
from dgm.archive.git_process import run_git
from dgm.archive.lock import error_of_write
from dgm.archive.objects import make_repository
from dgm.archive.run import Run
from dgm.archive.traces import MAX_BYTES, inflate
from dgm.bounded_reading import read_file
from dgm.errors import ArchiveCorrupt, DgmError, UserError

_REF = re.compile(rb"[0-9a-f]{40} refs/heads/(?:agents|waiting)/[0-9]{1,9}|#[^\n]*|")


def read_manifest(file: Path) -> Manifest:
    """Return the manifest of a packed run; raises like ``ContainerReader``."""
    with ContainerReader(file) as packed:
        return packed.manifest


def unpack(file: Path, folder: Path) -> Manifest:
    """Unpack a run to ``folder``, which appears only after all checks have passed.

    Git's configuration and its index are created here and not taken from the file.

    Raises:
        UserError: the folder exists, the file is not a packed run, or a newer dgm made it.
        ArchiveCorrupt: the file is damaged, or differs from its manifest; names the first fault.
        Infrastructure: the disk is full or failing.
    """
    folder = folder.resolve()
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(f"{folder}: already exists; choose another folder")
    draft = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}")
    make_runs_folder(folder.parent)
    try:
        with ContainerReader(file) as packed:
            for member, content in packed.members():
                _write(file, draft, member, content)
            manifest = packed.manifest
        _complete_run(file, draft)
        draft.replace(folder)
    except DgmError:
        raise
    except OSError as error:
        raise error_of_write(folder, error) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return manifest


def choose_folder(file: Path) -> Path:
    """Return the folder of a packed run under its own name, where runs are kept; raises like ``read_manifest``."""
    return next(archive_folders()) / read_manifest(file).run


def find_addresses(settings: object) -> Iterator[str]:
    """Yield the addresses for model calls and the variables of keys that the settings of a packed run name.

    Whoever resumes the run sends keys there.
    """
    if not isinstance(settings, dict):
        return
    for name, value in settings.items():
        if name in ("base_url", "key_env") and value:
            yield str(value)
        else:
            yield from find_addresses(value)


def _write(file: Path, draft: Path, member: PackMember, content: Iterator[bytes]) -> None:
    path = draft / member.name
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as target:
        for piece in _repack_trace(file, member, content) if path.suffix == ".z" else content:
            target.write(piece)


def _repack_trace(file: Path, member: PackMember, stored: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a trace compressed as a run has it, in pieces; a pack holds traces that are not."""
    digest, squeeze = hashlib.sha256(), zlib.compressobj()
    try:
        for piece in inflate(stored, MAX_BYTES):
            digest.update(piece)
            yield squeeze.compress(piece)
    except zlib.error as error:
        for _ in stored:
            pass  # a wrong checksum of the pack is said first
        raise ArchiveCorrupt(f"{file}: {member.name}: damaged ({error})") from error
    yield squeeze.flush()
    *_, first, rest = member.name.removesuffix(".z").split("/")
    if digest.hexdigest() != first + rest:
        raise ArchiveCorrupt(f"{file}: {member.name}: its content is not what its name says")


def _complete_run(file: Path, draft: Path) -> None:
    for part in (draft, draft / "holdout"):
        if part != draft and not part.exists():
            continue
        missing = [name for name in ("run.json", "events.db", "agents.git") if not (part / name).exists()]
        if missing:
            raise ArchiveCorrupt(f"{file}: it holds no {missing[0]}")
        (part / "traces").mkdir(exist_ok=True)
        _complete_repository(file, part / "agents.git")
        Run.open(part).close()


def _complete_repository(file: Path, repository: Path) -> None:
    refs = repository / "packed-refs"
    if not refs.is_file() or not all(_REF.fullmatch(line) for line in read_file(refs).split(b"\n")):
        raise ArchiveCorrupt(f"{file}: agents.git/packed-refs: not refs of agents")
    make_repository(repository)
    for packed in (repository / "objects" / "pack").glob("*.pack"):
        run_git(repository, "index-pack", f"--max-input-size={MAX_BYTES}", str(packed.resolve()))
