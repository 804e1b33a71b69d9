"""Where shipped files lie (recipes, suites, the seed) and where downloads and caches go.

Nothing here depends on the working directory.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def asset(*parts: str) -> Path:
    """The path of a shipped file or folder, such as ``asset("sandboxes", "python")``; it need not exist.

    An installed wheel keeps its assets inside the package, a checkout (or an editable install) beside it.
    """
    inside = _PACKAGE.joinpath("_assets", *parts)
    return inside if inside.exists() else _PACKAGE.parent.joinpath(*parts)


def cache_folder(*parts: str) -> Path:
    """A folder of the user's cache that belongs to dgm, made if missing."""
    import platformdirs

    folder = Path(platformdirs.user_cache_dir("dgm")).joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def state_folder(*parts: str) -> Path:
    """A folder of the user's that belongs to dgm and holds what may not be lost, made if missing."""
    import platformdirs

    folder = Path(platformdirs.user_state_dir("dgm")).joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
