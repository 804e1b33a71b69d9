"""Lock files: one ``name version`` line a package, sorted by name."""

from __future__ import annotations

from typing import Mapping

from .version import Version, VersionError

_HEADER = "# semver lock 1"


class LockError(ValueError):
    """The lock file cannot be read."""


def dump_lock(chosen: Mapping[str, Version]) -> str:
    """The text of a lock file."""
    lines = [f"{name} {chosen[name]}" for name in sorted(chosen)]
    return "\n".join([_HEADER, *lines]) + "\n"


def load_lock(text: str) -> dict[str, Version]:
    """Read what `dump_lock` wrote; comments and empty lines are skipped."""
    chosen: dict[str, Version] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        name, _, version = line.rpartition(" ")
        if not name:
            raise LockError(f"line {number}: expected a name and a version, got {line!r}")
        try:
            chosen[name.strip()] = Version.parse(version)
        except VersionError as error:
            raise LockError(f"line {number}: {error}") from error
    return chosen
