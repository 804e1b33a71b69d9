"""Finding a run by what a person types: a path, or a name under ``./archive`` or ``$DGM_ARCHIVE``."""

import difflib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from dgm.errors import UserError


def find_run(name: str, *, here: Path | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of a run.

    Raises:
        UserError: there is none; suggests the nearest name.
    """
    folders = list(archive_folders(here, environment))
    for candidate in (Path(here or Path.cwd(), name), *(folder / name for folder in folders)):
        if (candidate / "run.json").is_file():
            return candidate
    known = [path.name for folder in folders for path in runs_in(folder)]
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        hint = f"did you mean {near[0]!r}?"
    else:
        places = " or ".join(str(folder) for folder in folders)
        hint = f"known in {places}: {', '.join(sorted(known)) or 'none'}"
    raise UserError(f"no run {name!r}; {hint}")


def archive_folders(here: Path | None = None, environment: Mapping[str, str] = os.environ) -> Iterator[Path]:
    """Where runs are looked for, in order; new ones are made in the first."""
    if environment.get("DGM_ARCHIVE"):
        yield Path(environment["DGM_ARCHIVE"])
    yield Path(here or Path.cwd(), "archive")


def runs_in(folder: Path) -> Iterator[Path]:
    """The runs directly below a folder, by name."""
    if folder.is_dir():
        yield from (path for path in sorted(folder.iterdir()) if (path / "run.json").is_file())
