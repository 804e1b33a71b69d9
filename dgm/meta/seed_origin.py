"""The commit of the git repository that a seed came from: kept in ``run.json``, so that an export can go on from it.

The commit's own object is kept, and nothing of its history: whoever has the repository has that.
"""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.archive.git import LocalRepository, parse_header
from dgm.archive.snapshots import object_id
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
        return parse_header(self.data)["tree"][0]

    @property
    def has_parents(self) -> bool:
        """True if it has a history."""
        return "parent" in parse_header(self.data)


def read_origin(folder: Path) -> SeedOrigin | None:
    """Return the current commit of a folder that is a git repository itself; None if it is none, or has no commit."""
    if not (folder / ".git").exists():
        return None
    try:
        with LocalRepository(folder.resolve()) as repository:
            return origin_of(repository)
    except (UserError, Infrastructure):
        return None


def origin_of(repository: LocalRepository) -> SeedOrigin | None:
    """Return the current commit of a repository; None if it is larger than a run keeps.

    Raises:
        UserError: there is none, or it cannot be read.
        Infrastructure: git takes too long.
    """
    data = repository.get(repository.head, "commit")
    return SeedOrigin(repository.head, data) if len(data) <= _MOST_BYTES else None


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
        origin = SeedOrigin(str(entry["id"]), base64.b64decode(entry["object"], validate=True))
        if object_id("commit", origin.data) == origin.commit and origin.tree:
            return origin
    except (KeyError, TypeError, binascii.Error):
        pass
    raise ArchiveCorrupt(f"{where}: its {KEY} is no commit; restore it from a copy")
