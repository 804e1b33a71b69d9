"""Locations of shipped files (recipes, suites, the seed), downloads and caches.

Nothing here depends on the working directory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class Example:
    """A recorded run that comes with dgm: a packed file below ``archive/example``, and what it is."""

    file: str
    what: str


EXAMPLES: Mapping[str, Example] = {
    "example": Example("example.dgm", "a recorded search with the offline model"),
    "real-example": Example("real.dgm", "a recorded search with a small real model"),
}
"""Names that mean a recorded run in commands that only read, unless a run of the user's has the name."""
NOT_RUNS = (*EXAMPLES, "seed", "seeds")
"""Names in an archive that no run may have."""
_PACKAGE = Path(__file__).resolve().parent


def asset(*parts: str) -> Path:
    """Return the path of a shipped file or folder, such as ``asset("sandboxes", "python")``; it need not exist.

    An installed wheel has its assets inside the package; a checkout or an editable install has them beside it.
    """
    inside = _PACKAGE.joinpath("_assets", *parts)
    return inside if inside.exists() else _PACKAGE.parent.joinpath(*parts)


@cache
def seed_names() -> tuple[str, ...]:
    """Return the names of the shipped agents that a search can start from: the folders of ``archive/seeds``."""
    return tuple(sorted(file.parent.name for file in asset("archive", "seeds").glob("*/agent.toml")))


def seed_folder(name: str) -> Path:
    """Return the folder of a shipped agent, one of ``seed_names``."""
    return asset("archive", "seeds", name)


@cache
def preset_names() -> tuple[str, ...]:
    """Return the names of the shipped settings of published designs: the files of ``archive/presets``."""
    return tuple(sorted(file.stem for file in asset("archive", "presets").glob("*.toml")))


def preset_file(name: str) -> Path:
    """Return the settings file of a preset, one of ``preset_names``; its first line is a comment that describes it."""
    return asset("archive", "presets", f"{name}.toml")


def cache_folder(*parts: str) -> Path:
    """Return a folder of dgm's in the user's cache, created if missing."""
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("dgm")).joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def state_folder(*parts: str) -> Path:
    """Return a folder of dgm's for the user's data that must not be lost, created if missing."""
    import platformdirs

    folder = Path(platformdirs.user_state_dir("dgm")).joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
