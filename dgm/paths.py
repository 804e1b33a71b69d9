"""Locations of shipped files (recipes, suites, the seed), downloads and caches.

Nothing here depends on the working directory.
"""

from pathlib import Path

SEEDS = ("plain", "solid")
"""Names of the shipped agents that a search can start from."""
_PACKAGE = Path(__file__).resolve().parent


def asset(*parts: str) -> Path:
    """Return the path of a shipped file or folder, such as ``asset("sandboxes", "python")``; it need not exist.

    An installed wheel has its assets inside the package; a checkout or an editable install has them beside it.
    """
    inside = _PACKAGE.joinpath("_assets", *parts)
    return inside if inside.exists() else _PACKAGE.parent.joinpath(*parts)


def seed_folder(name: str) -> Path:
    """Return the folder of a shipped agent, one of ``SEEDS``."""
    return asset("archive", "seeds", name)


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
