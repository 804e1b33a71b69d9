"""Runs by what a user types: a path, a name under ``./archive`` or ``$DGM_ARCHIVE``, or a packed run.

A packed run is read from a copy in the user's cache. The copy is made and verified once per content of the file; the
file is never written.
"""

import difflib
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from dgm.errors import Hint, UserError
from dgm.paths import EXAMPLES, asset, cache_folder

SUFFIX = ".dgm"
"""Ending of a packed run's name."""
_NAMES = 12
"""Maximum number of run names in a message."""


def find_run(
    name: str,
    *,
    write: bool = False,
    here: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Path:
    """Return the folder of a run; for a packed run, the folder of its unpacked copy.

    Args:
        name: as typed.
        write: whether the run is to be changed, which is impossible for a packed run.
        here: the working folder.
        environment: the environment in which ``DGM_ARCHIVE`` is looked up.

    Raises:
        UserError: there is no such run (suggests the nearest name), or it is packed and to be written.
        ArchiveCorrupt: the run is packed, and the file is damaged.
    """
    path = locate_run(name, here=here, environment=environment)
    if path.is_dir():
        return path
    if write:
        raise packed_error(name)
    return _unpack_once(path)


def packed_error(name: str) -> UserError:
    """Return the error for a change of a packed run."""
    file = name if name.endswith(SUFFIX) else f"{name}{SUFFIX}"
    return UserError(
        f"{name} is packed and can only be read", hint=Hint("unpack it first", "export", (file, "FOLDER/"))
    )


def check_unpacked(folder: Path) -> None:
    """Raise UserError if a run's folder is the copy of a packed run, which is only read."""
    if folder.resolve().is_relative_to(unpacked_copies_folder().resolve()):
        raise packed_error(folder.name)


def locate_run(name: str, *, here: Path | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of a run, or the file of a packed one; raises like ``find_run``."""
    folders = list(archive_folders(here, environment))
    candidates = [Path(here or Path.cwd(), name), *(folder / name for folder in folders)]
    for candidate in candidates:
        if (candidate / "run.json").is_file() or (name.endswith(SUFFIX) and candidate.is_file()):
            return candidate
    if name in EXAMPLES:
        shipped = asset("archive", "example", EXAMPLES[name].file)
        if shipped.is_file():
            return shipped
    known = [path.name for folder in folders for path in find_runs_in(folder)]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {near[0]!r}?"
    else:
        names = sorted(known)[:_NAMES] + ["…"] * (len(known) > _NAMES)
        hint = f"known in {' or '.join(map(str, folders))}: {', '.join(names) or 'none'}"
    raise UserError(f"no run {name!r}; {hint}")


def archive_folders(here: Path | None = None, environment: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Yield the folders in which runs are searched for, in order; new runs are made in the first.

    Raises:
        UserError: ``DGM_ARCHIVE`` begins with the home of an unknown user.
    """
    if chosen := environment.get("DGM_ARCHIVE"):
        try:
            # A file of variables, which no shell reads, may leave the ~ to dgm.
            yield Path(chosen).expanduser()
        except RuntimeError as error:
            raise UserError(f"DGM_ARCHIVE={chosen}: {error}") from error
    yield Path(here or Path.cwd(), "archive")


def find_runs_in(folder: Path) -> Iterator[Path]:
    """Yield the runs directly below a folder, ordered by name."""
    if folder.is_dir():
        yield from (path for path in sorted(folder.iterdir()) if (path / "run.json").is_file())


def unpacked_copies_folder() -> Path:
    """Return the folder of the unpacked copies of packed runs."""
    return cache_folder("packed")


def _unpack_once(file: Path) -> Path:
    from dgm.archive.packed import read_manifest, unpack

    try:
        with file.open("rb") as data:
            digest = hashlib.file_digest(data, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from error
    folder = unpacked_copies_folder() / digest / read_manifest(file).run.name
    folder.parent.mkdir(exist_ok=True)
    if not (folder / "run.json").is_file():
        try:
            unpack(file, folder)
        except UserError:
            # Another process was faster; the folder appears whole.
            if not (folder / "run.json").is_file():
                raise
    return folder
