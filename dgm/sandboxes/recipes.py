"""Recipes of sandbox images: a folder under ``sandboxes/`` with a ``Dockerfile`` and a ``sandbox.toml``.

A recipe's digest covers every file of its folder and of its base recipes (``FROM dgm/OTHER``), so that an image's tag
identifies its exact inputs.
"""

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dgm.errors import UserError
from dgm.paths import asset
from dgm.protocols import Mount, SandboxSpec
from dgm.toml_files import read_toml

_LIMITS: Mapping[str, type] = {"cpus": float, "memory_mb": int, "pids": int, "disk_mb": int, "user": int}
_MOST: Mapping[str, float] = {
    "cpus": 1024.0,
    "memory_mb": 16_000_000,
    "pids": 4_000_000,
    "disk_mb": 16_000_000,
    "user": 2**31,
}
_LISTS: Mapping[str, Sequence[str]] = {"bubblewrap": ["commands", "files"]}
FIRST_UNPRIVILEGED_UID = 1000
_TOOLS = "tools"
_TOOLS_IN_SANDBOX = "/opt/dgm/tools"
_OURS = "dgm/"
"""Prefix of a recipe's name in a Dockerfile's ``FROM``."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """The contents of a sandbox, and its default limits."""

    name: str
    folder: Path
    digest: str
    cpus: float = 1.0
    memory_mb: int = 1024
    pids: int = 128
    disk_mb: int = 256
    user: int = 10001
    """Gid under which everything runs. The uid is each sandbox's own."""
    commands: tuple[str, ...] = ()
    """Programs that the host must offer for bubblewrap."""
    files: tuple[str, ...] = ()
    """Patterns of absolute paths; for bubblewrap, the host must have a match for each."""
    bases: tuple[str, ...] = ()
    """Images that the Dockerfile starts from; ``dgm/OTHER`` is another recipe's."""
    tools: Path | None = None
    """Host folder of the programs at ``/opt/dgm/tools``: its own, else a base recipe's."""

    @property
    def stands_on(self) -> tuple[str, ...]:
        """Base recipes: those whose images it is made from."""
        return tuple(base.removeprefix(_OURS) for base in self.bases if base.startswith(_OURS))

    @property
    def shown(self) -> tuple[Mount, ...]:
        """The image's host files, for an engine that has no images."""
        return (Mount(self.tools, _TOOLS_IN_SANDBOX),) if self.tools else ()

    @property
    def tag(self) -> str:
        """Name of the image."""
        return f"dgm/{self.name}:{self.digest[:16]}"

    def spec(
        self, labels: Mapping[str, str], mounts: Iterable[Mount] = (), lifetime_s: float = 3600.0
    ) -> SandboxSpec:
        """Return a specification with the recipe's own limits."""
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
    """Return the names of all recipes, sorted."""
    folder = folder or asset("sandboxes")
    return sorted(path.parent.name for path in folder.glob("*/sandbox.toml"))


def load(name: str, folder: Path | None = None) -> Recipe:
    """Return the recipe called ``name``.

    Raises:
        UserError: there is none, its ``sandbox.toml`` is wrong, or one of its base recipes is missing or wrong.
    """
    return _load(name, folder or asset("sandboxes"), ())


def _load(name: str, folder: Path, above: tuple[str, ...]) -> Recipe:
    here = folder / name
    settings_file = here / "sandbox.toml"
    if name not in names(folder):
        hint = _suggestion(name, names(folder))
        wanted_by = f" for {folder / above[-1] / 'Dockerfile'}" if above else ""
        raise UserError(f"unknown sandbox image {name!r}{wanted_by}: there is no {settings_file}{hint}")
    if name in above:
        raise UserError(f"{here / 'Dockerfile'}: recipes stand on each other: {' → '.join([*above, name])}")
    settings = read_toml(settings_file)
    recipe = Recipe(
        name, here, "", bases=_bases(here / "Dockerfile"), **_check_settings(settings, settings_file)
    )
    below = [_load(other, folder, (*above, name)) for other in recipe.stands_on]
    own = here / _TOOLS
    tools = [own] if own.is_dir() else [other.tools for other in below if other.tools]
    digest = _digest(here, [other.digest for other in below])
    return replace(recipe, digest=digest, tools=tools[0] if tools else None)


def _bases(dockerfile: Path) -> tuple[str, ...]:
    try:
        lines = [line.split() for line in dockerfile.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{dockerfile}: cannot be read: {error}") from error
    found = tuple(words[1] for words in lines if len(words) > 1 and words[0].upper() == "FROM")
    if not found:
        raise UserError(f"{dockerfile}: expected a line 'FROM image'")
    return found


def _check_settings(settings: Mapping[str, Any], where: Path) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in settings.items():
        if key in _LIMITS:
            values[key] = _check_limit(key, value, where)
        elif key in _LISTS:
            values |= _check_names(key, value, where)
        else:
            hint = _suggestion(key, [*_LIMITS, *_LISTS])
            raise UserError(f"{where}: unknown key {key!r}{hint}")
    return values


def _check_limit(key: str, value: object, where: Path) -> float | int:
    wanted = _LIMITS[key]
    fits = isinstance(value, int | float if wanted is float else int) and not isinstance(value, bool)
    if not fits or not isinstance(value, int | float) or value <= 0:
        raise UserError(f"{where}: {key} = {value!r}: expected a positive {wanted.__name__}")
    if not value <= _MOST[key]:
        raise UserError(f"{where}: {key} = {value!r}: expected at most {_MOST[key]:,g}")
    if key == "user" and value < FIRST_UNPRIVILEGED_UID:
        raise UserError(
            f"{where}: user = {value!r}: expected an unprivileged id, {FIRST_UNPRIVILEGED_UID} or above"
        )
    return wanted(value)  # type: ignore[no-any-return]


def _check_names(section: str, value: object, where: Path) -> dict[str, tuple[str, ...]]:
    keys = _LISTS[section]
    if not isinstance(value, dict):
        raise UserError(f"{where}: {section} = {value!r}: expected a table with the key {keys[0]!r}")
    for key, items in value.items():
        if key not in keys:
            raise UserError(f"{where}: unknown key '{section}.{key}'{_suggestion(key, keys)}")
        if not isinstance(items, list) or not all(isinstance(item, str) and item for item in items):
            raise UserError(f"{where}: {section}.{key} = {items!r}: expected a list of names")
        if key == "files" and not all(item.startswith("/") for item in items):
            raise UserError(f"{where}: {section}.{key} = {items!r}: expected absolute paths")
    return {key: tuple(items) for key, items in value.items()}


def _suggestion(given: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(given, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else f" (known: {', '.join(known)})"


def _digest(folder: Path, below: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for path in sorted(
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ):
        for part in (path.relative_to(folder).as_posix().encode(), path.read_bytes()):
            digest.update(len(part).to_bytes(8, "big") + part)
    for other in below:
        digest.update(other.encode())
    return digest.hexdigest()
