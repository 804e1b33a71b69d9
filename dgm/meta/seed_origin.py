"""The commit of the git repository that a seed came from: kept in ``run.json``, so that an export can go on from it.

The commit's own object is kept, and nothing of its history: whoever has the repository has that.
"""

import base64
import binascii
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.archive.objects import object_id
from dgm.errors import ArchiveCorrupt
from dgm.processes import run_apart

KEY = "seed_commit"
"""Key of a run's configuration below which the commit stands."""
GIT_SETTINGS = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "submodule.recurse=false")
"""Settings under which git reads a repository that may be a stranger's."""
_MOST_BYTES = 64_000
_READ_S = 60.0


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
    data = _ask_git(folder, "cat-file", "commit", "HEAD")
    if data is None or len(data) > _MOST_BYTES:
        return None
    found = SeedOrigin(object_id("commit", data), data)
    # A repository of another hash is named by other ids.
    named = _ask_git(folder, "rev-parse", "--verify", "HEAD^{commit}")
    return found if named is not None and named.strip().decode("ascii", "replace") == found.commit else None


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


def _ask_git(folder: Path, *words: str) -> bytes | None:
    settings = [word for setting in GIT_SETTINGS for word in ("-c", setting)]
    environment = {
        **os.environ,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
    }
    try:
        done = run_apart(["git", *settings, *words], cwd=folder, env=environment, timeout_s=_READ_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout
