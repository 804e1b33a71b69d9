"""Recipes of sandbox images: a folder under ``sandboxes/`` with a ``Dockerfile`` and a ``sandbox.toml``.

A recipe's digest covers every file of its folder, so an image's tag says exactly what it was made of.
"""

import difflib
import hashlib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.errors import UserError
from dgm.paths import asset
from dgm.protocols import Mount, SandboxSpec

_LIMITS: Mapping[str, type] = {"cpus": float, "memory_mb": int, "pids": int, "disk_mb": int, "user": int}
_LISTS: Mapping[str, str] = {"bootstrap": "packages", "bubblewrap": "commands"}
FIRST_UNPRIVILEGED_UID = 1000


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a sandbox is made of, and what it may have by default."""

    name: str
    folder: Path
    digest: str
    cpus: float = 1.0
    memory_mb: int = 1024
    pids: int = 128
    disk_mb: int = 256
    user: int = 10001
    """Uid and gid under which everything runs."""
    packages: tuple[str, ...] = ()
    """Debian packages of the image where no registry answers."""
    commands: tuple[str, ...] = ()
    """What the host must offer for bubblewrap."""

    @property
    def tag(self) -> str:
        """Name of the image."""
        return f"dgm/{self.name}:{self.digest[:16]}"

    def spec(
        self, labels: Mapping[str, str], mounts: Iterable[Mount] = (), lifetime_s: float = 3600.0
    ) -> SandboxSpec:
        """A specification with the recipe's own limits."""
        return SandboxSpec(
            image=self.name,
            labels=labels,
            mounts=tuple(mounts),
            cpus=self.cpus,
            memory_mb=self.memory_mb,
            pids=self.pids,
            disk_mb=self.disk_mb,
            lifetime_s=lifetime_s,
        )


def names(folder: Path | None = None) -> list[str]:
    """The recipes that there are, sorted."""
    folder = folder or asset("sandboxes")
    return sorted(path.parent.name for path in folder.glob("*/sandbox.toml"))


def load(name: str, folder: Path | None = None) -> Recipe:
    """The recipe called ``name``.

    Raises:
        UserError: there is none, or its ``sandbox.toml`` is wrong.
    """
    folder = folder or asset("sandboxes")
    here = folder / name
    settings_file = here / "sandbox.toml"
    if name not in names(folder):
        hint = _suggestion(name, names(folder))
        raise UserError(f"unknown sandbox image {name!r}: there is no {settings_file}{hint}")
    try:
        settings = tomllib.loads(settings_file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{settings_file}: not valid TOML: {error}") from error
    values = _checked(settings, settings_file)
    return Recipe(name, here, _digest(here), **values)


def _checked(settings: Mapping[str, Any], where: Path) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key in _LIMITS:
            values[key] = _limit(key, value, where)
        elif key in _LISTS:
            values[_LISTS[key]] = _names(key, value, where)
        else:
            hint = _suggestion(key, [*_LIMITS, *_LISTS])
            raise UserError(f"{where}: unknown key {key!r}{hint}")
    return values


def _limit(key: str, value: object, where: Path) -> float | int:
    wanted = _LIMITS[key]
    fits = isinstance(value, int | float if wanted is float else int) and not isinstance(value, bool)
    if not fits or not isinstance(value, int | float) or value <= 0:
        raise UserError(f"{where}: {key} = {value!r}: expected a positive {wanted.__name__}")
    if key == "user" and value < FIRST_UNPRIVILEGED_UID:
        raise UserError(
            f"{where}: user = {value!r}: expected an unprivileged uid, {FIRST_UNPRIVILEGED_UID} or above"
        )
    return wanted(value)  # type: ignore[no-any-return]


def _names(section: str, value: object, where: Path) -> tuple[str, ...]:
    key = _LISTS[section]
    if not isinstance(value, dict):
        raise UserError(f"{where}: {section} = {value!r}: expected a table with the key {key!r}")
    for other in value:
        if other != key:
            raise UserError(f"{where}: unknown key '{section}.{other}'{_suggestion(other, [key])}")
    items = value.get(key, [])
    if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
        raise UserError(f"{where}: {section}.{key} = {items!r}: expected a list of names")
    return tuple(items)


def _suggestion(given: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(given, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else f" (known: {', '.join(known)})"


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ):
        for part in (path.relative_to(folder).as_posix().encode(), path.read_bytes()):
            digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()
