"""Find, and remove on request, files that a run no longer needs and files that dead processes left beside it.

A file that an event names, a file behind a link and a name that dgm does not create are never found. The caller must
ensure that nobody writes the run.
"""

import contextlib
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dgm.archive.history import find_unborn
from dgm.archive.lock import STOP_FILE
from dgm.archive.repository import AgentRepository
from dgm.archive.run import Run
from dgm.domain import CommitId

OBJECT = "git objects that no agent needs"
FILE = "files that were not finished"
FOLDER = "folders that were not finished"
OLD_S = 3600.0
"""Age in seconds from which an unfinished folder is assumed to belong to a dead process."""
_UNFINISHED = re.compile(r"\.[0-9a-f]{12}|tmp_(obj|pack|idx|rev)_\w+")
_DRAFT = re.compile(r"\.(?P<run>.+)\.(new|[0-9a-f]{12})|\..+\.dgm\.[a-z0-9_]{8}")
_PARTS = frozenset(
    {
        "run.json",
        "run.db",
        "run.db-wal",
        "run.db-shm",
        "run.db-journal",
        "run.lock",
        "events.db",
        "events.db-wal",
        "events.db-shm",
        "events.lock",
        "agents.git",
    }
    | {"traces", "holdout", "approvals", "checks.json", "calls.json", "nodes.json", "live.json", STOP_FILE}
)
"""Names of the parts of a run's folder, excluding the runs inside it."""
_PACKING = frozenset({"run", "pack"})
_HEX = re.compile(r"[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Leftover:
    """One file or folder that nothing needs."""

    path: Path
    what: str
    size_bytes: int
    """Size on disk in bytes."""
    commits: tuple[CommitId, ...] = ()
    """For ``OBJECT``: the commits that the repository ``path`` must keep."""


def find_nested_runs(folder: Path) -> list[Path]:
    """Return the runs in a run's folder: its examination, evaluations and live replays. Links are ignored."""
    return [path for path in sorted(folder.iterdir()) if _is_folder(path) and (path / "run.json").is_file()]


def is_own_part(path: Path) -> bool:
    """Return whether dgm creates this name in a run's folder: for a part, a nested run or an unfinished file."""
    if path.name in _PARTS or _UNFINISHED.fullmatch(path.name):
        return True
    return _is_folder(path) and (path / "run.json").is_file()


def find_leftovers(folder: Path) -> Sequence[Leftover]:
    """Find what one run no longer needs, excluding the runs in its folder; no process may write the run meanwhile.

    Raises:
        UserError, ArchiveCorrupt: the run cannot be read completely, so its needs are unknown.
    """
    with Run.open(folder) as run:
        commits = {agent.commit for agent in run.tree.agents}
        commits |= {child.commit for child in find_unborn(run).values()}
    return [
        *_find_unused_objects(folder / "agents.git", commits),
        *_find_unfinished_files(folder),
    ]


def find_dead_drafts(archive: Path) -> Iterator[Leftover]:
    """Yield folders of runs whose creation, packing, unpacking or removal died, once they are an hour old."""
    for path in sorted(archive.iterdir()) if archive.is_dir() else ():
        found = _DRAFT.fullmatch(path.name)
        if not found or not _is_folder(path):
            continue
        inside = list(path.iterdir())
        if not inside or not all(
            is_own_part(each) if found["run"] else each.name in _PACKING for each in inside
        ):
            continue
        size, newest = _measure_path(path)
        if time.time() - newest > OLD_S:
            yield Leftover(path, FOLDER, size)


def remove_leftover(left: Leftover) -> None:
    """Remove one leftover. A file that is gone, or was replaced by something else, is left alone.

    Raises:
        OSError: it cannot be removed.
    """
    with contextlib.suppress(FileNotFoundError):
        if left.what == OBJECT:
            AgentRepository(left.path).remove_unneeded(left.commits)
        elif _is_folder(left.path):
            shutil.rmtree(left.path)
        elif stat.S_ISREG(left.path.lstat().st_mode):
            left.path.unlink()


def disk_bytes(path: Path) -> int:
    """Return the disk space of a file, or of a folder with its contents, in bytes. Links are not followed."""
    return _measure_path(path)[0]


def _measure_path(path: Path) -> tuple[int, float]:
    """Return the disk space in bytes, and the time of the newest change."""
    total, newest, waiting = 0, 0.0, [path]
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError):  # it disappeared meanwhile, or is unreadable
            found = place.lstat()
            total += found.st_blocks * 512
            newest = max(newest, found.st_mtime)
            if stat.S_ISDIR(found.st_mode):
                waiting += place.iterdir()
    return total, newest


def _find_unused_objects(repository: Path, commits: set[CommitId]) -> Iterator[Leftover]:
    sizes = AgentRepository(repository).find_unneeded(commits)
    if sizes:
        yield Leftover(repository, OBJECT, sum(sizes.values()), tuple(commits))


def _find_unfinished_files(folder: Path) -> Iterator[Leftover]:
    heads, objects = folder / "agents.git" / "refs" / "heads", folder / "agents.git" / "objects"
    places = [folder, folder / "approvals", folder / "agents.git"]
    places += [heads / "agents", heads / "waiting", *_find_hex_folders(objects, 2), objects / "pack"]
    for place in places:
        if all(map(_is_folder, _folders_up_to_run(folder, place))):
            for path in sorted(place.iterdir()):
                if _UNFINISHED.fullmatch(path.name) and _is_file(path):
                    yield Leftover(path, FILE, disk_bytes(path))


def _folders_up_to_run(folder: Path, place: Path) -> list[Path]:
    """Return the folders from ``place`` up to a run's folder, excluding the latter."""
    return [each for each in (place, *place.parents) if each != folder and folder in each.parents]


def _find_hex_folders(place: Path, length: int) -> list[Path]:
    """Return the folders in a place whose names are ``length`` hexadecimal digits. Links are not followed."""
    if not _is_folder(place):
        return []
    names = (path for path in sorted(place.iterdir()) if len(path.name) == length)
    return [path for path in names if _HEX.fullmatch(path.name) and _is_folder(path)]


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _is_file(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid in (os.geteuid(), path.parent.lstat().st_uid)
