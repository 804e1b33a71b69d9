"""Choose one version of every package so that all requirements hold."""

from __future__ import annotations

import logging
from typing import Mapping, Optional

from .ranges import Range
from .version import Version

log = logging.getLogger(__name__)

Requirements = dict[str, Range]


class Conflict(Exception):
    """No choice of versions satisfies the requirements."""


class Index:
    """The packages that exist, with the requirements of each of their versions."""

    def __init__(self) -> None:
        self._packages: dict[str, dict[Version, Requirements]] = {}

    def add(self, name: str, version: str, requires: Optional[Mapping[str, str]] = None) -> None:
        """Publish one version of a package."""
        parsed = {other: Range.parse(text) for other, text in (requires or {}).items()}
        self._packages.setdefault(name, {})[Version.parse(version)] = parsed

    def versions(self, name: str) -> list[Version]:
        """All versions of a package, the newest first."""
        return sorted(self._packages.get(name, {}), reverse=True)

    def requirements(self, name: str, version: Version) -> Requirements:
        """What one version needs."""
        return dict(self._packages[name][version])


def resolve(index: Index, roots: Mapping[str, str]) -> dict[str, Version]:
    """The newest versions that satisfy the roots and everything they need.

    Packages are decided in the order in which they are first required, newest version first,
    going back on a decision when something behind it cannot be satisfied.

    Raises:
        Conflict: There is no solution.
    """
    wanted = {name: Range.parse(text) for name, text in roots.items()}
    chosen = _search(index, wanted, {})
    if chosen is None:
        raise Conflict("no versions satisfy " + ", ".join(f"{name} {text}" for name, text in roots.items()))
    return chosen


def _search(index: Index, wanted: Requirements, chosen: dict[str, Version]) -> Optional[dict[str, Version]]:
    name = next((name for name in wanted if name not in chosen), None)
    if name is None:
        return chosen
    for version in index.versions(name):
        if version not in wanted[name]:
            continue
        log.info("try %s %s", name, version)
        narrowed = _narrow(wanted, index.requirements(name, version), {**chosen, name: version})
        if narrowed is None:
            log.info("drop %s %s", name, version)
            continue
        solution = _search(index, narrowed, {**chosen, name: version})
        if solution is not None:
            return solution
    log.info("nothing fits %s %s", name, wanted[name])
    return None


def _narrow(
    wanted: Requirements, more: Requirements, chosen: Mapping[str, Version]
) -> Optional[Requirements]:
    """Both sets of requirements at once, ``None`` when a chosen version breaks one of them."""
    result = dict(wanted)
    for name, needed in more.items():
        if name in chosen and chosen[name] not in needed:
            return None
        result[name] = result[name].intersect(needed) if name in result else needed
        if result[name].is_empty:
            return None
    return result
