"""The commit of the git repository that a seed came from: kept in ``run.json``, so that an export can go on from it.

The commit's own object is kept, and nothing of its history: whoever has the repository has that.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.archive.local_repository import LocalRepository
from dgm.archive.objects import object_id
from dgm.errors import ArchiveCorrupt, Infrastructure, UserError

KEY = "seed_commit"
"""Key of a run's configuration below which the commit stands."""
_MOST_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class SeedOrigin:
    """A commit of git's usual kind, by SHA-1."""

    commit: str
    data: bytes
    """The commit's object, as git stores it."""

    @property
    def tree(self) -> str:
        """The id of its tree."""
        return self._words("tree")[0]

    @property
    def has_parents(self) -> bool:
        """True if it has a history."""
        return bool(self._words("parent"))

    def _words(self, name: str) -> list[str]:
        head = self.data.partition(b"\n\n")[0].decode("ascii", "replace").splitlines()
        return [line.split(" ", 1)[1] for line in head if line.startswith(f"{name} ")]


def read_origin(folder: Path) -> SeedOrigin | None:
    """Return the current commit of a folder that is a git repository itself; None if it is none, or has no commit."""
    if not (folder / ".git").exists():
        return None
    try:
        return origin_of(LocalRepository.of_work_tree(folder.resolve()))
    except (UserError, Infrastructure):
        return None


def origin_of(repository: LocalRepository) -> SeedOrigin | None:
    """Return the current commit of a repository; None if it is larger than a run keeps, or not named by SHA-1.

    Raises:
        UserError: there is none, or it cannot be read.
        Infrastructure: git takes too long.
    """
    data = repository.run("cat-file", "commit", repository.head)
    fits = len(data) <= _MOST_BYTES and object_id("commit", data) == repository.head
    return SeedOrigin(repository.head, data) if fits else None


def freeze_origin(origin: SeedOrigin | None) -> Mapping[str, Any]:
    """Return the entry of ``run.json`` for the commit; empty if there is none."""
    if origin is None:
        return {}
    return {KEY: {"id": origin.commit, "object": base64.b64encode(origin.data).decode("ascii")}}


def load_origin(config: Mapping[str, Any], where: str) -> SeedOrigin | None:
    """Return the commit that the seed of a run came from; None if the run names none.

    Raises:
        ArchiveCorrupt: it is not what dgm writes.
    """
    entry = config.get(KEY)
    if entry is None:
        return None
    try:
        found = SeedOrigin(str(entry["id"]), base64.b64decode(entry["object"], validate=True))
        if object_id("commit", found.data) == found.commit and found.tree:
            return found
    except (KeyError, TypeError, IndexError, binascii.Error):
        pass
    raise ArchiveCorrupt(f"{where}: its {KEY} is no commit; restore it from a copy")
