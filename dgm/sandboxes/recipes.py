"""Recipes of sandbox images: a folder under ``sandboxes/`` with a ``Dockerfile`` and a ``sandbox.toml``.

A recipe's digest covers every file of its folder and of its base recipes (``FROM dgm/OTHER``), so that an image's tag
identifies its exact inputs.
"""

import difflib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dgm.config.toml_files import read_toml
from dgm.errors import UserError
from dgm.paths import asset
from dgm.protocols import Mount, SandboxSpec

FIRST_UNPRIVILEGED_UID = 1000
_TOOLS = "tools"
_TOOLS_IN_SANDBOX = "/opt/dgm/tools"
_OURS = "dgm/"
"""Prefix of a recipe's name in a Dockerfile's ``FROM``."""


class _Bubblewrap(BaseModel):
    """The needs of a recipe where the host stands for its image."""

    model_config = ConfigDict(extra="forbid", strict=True)
    commands: list[Annotated[str, Field(min_length=1)]] = []
    files: list[Annotated[str, Field(pattern="^/")]] = []


class _Settings(BaseModel):
    """The contents of ``sandbox.toml``."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)
    cpus: Annotated[float, Field(gt=0, le=1024)] = 1.0
    memory_mb: Annotated[int, Field(gt=0, le=16_000_000)] = 1024
    pids: Annotated[int, Field(gt=0, le=4_000_000)] = 128
    disk_mb: Annotated[int, Field(gt=0, le=16_000_000)] = 256
    user: Annotated[int, Field(ge=FIRST_UNPRIVILEGED_UID, le=2**31)] = 10001
    """Gid under which everything runs. The uid is each sandbox's own."""
    bubblewrap: _Bubblewrap = _Bubblewrap()


class Recipe(_Settings):
    """The contents of a sandbox, and its default limits."""

    name: str
    folder: Path
    digest: str
    tools: Path | None = None
    """Host folder of the programs at ``/opt/dgm/tools``: its own, else a base recipe's."""

    @property
    def commands(self) -> Sequence[str]:
        """Programs that the host must offer for bubblewrap."""
        return self.bubblewrap.commands

    @property
    def files(self) -> Sequence[str]:
        """Patterns of absolute paths; for bubblewrap, the host must have a match for each."""
        return self.bubblewrap.files

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
    settings = _read_settings(settings_file)
    below = [_load(other, folder, (*above, name)) for other in _find_bases(here / "Dockerfile")]
    tools = [here / _TOOLS] if (here / _TOOLS).is_dir() else [other.tools for other in below if other.tools]
    digest = _digest(here, [other.digest for other in below])
    parts = {"name": name, "folder": here, "digest": digest, "tools": next(iter(tools), None)}
    return Recipe.model_validate({**settings, **parts})


def _find_bases(dockerfile: Path) -> list[str]:
    """Return the names of the recipes that a Dockerfile starts from."""
    try:
        lines = [line.split() for line in dockerfile.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{dockerfile}: cannot be read: {error}") from error
    bases = [words[1] for words in lines if len(words) > 1 and words[0].upper() == "FROM"]
    if not bases:
        raise UserError(f"{dockerfile}: expected a line 'FROM image'")
    return [base.removeprefix(_OURS) for base in bases if base.startswith(_OURS)]


def _read_settings(where: Path) -> dict[str, Any]:
    try:
        return _Settings.model_validate(read_toml(where)).model_dump()
    except ValidationError as error:
        first = error.errors()[0]
        *above, name = map(str, first["loc"])
        key = ".".join([*above, name])
        if first["type"] == "extra_forbidden":
            known = _Bubblewrap.model_fields if above else _Settings.model_fields
            raise UserError(f"{where}: unknown key {key!r}{_suggestion(name, known)}") from error
        raise UserError(f"{where}: {key} = {first['input']!r}: {first['msg']}") from error


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
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
