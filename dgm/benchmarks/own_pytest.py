"""pytest as it is installed beside dgm, for sandboxes whose Python has none.

All of it is pure Python, so that it runs on another version than dgm's own.
"""

from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from dgm.domain import Entry, Snapshot

FOLDER = "/job/pytest"
"""Folder of the packages in a sandbox."""
MIN_MINOR = 10
"""Lowest version of Python 3 that it runs on."""
_MODULES = (
    "pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments",
    "exceptiongroup", "tomli", "typing_extensions",
)  # fmt: skip
"""pytest and what it imports; the last three on Python 3.10 only."""
_LARGE = ("pygments/lexers/", "pygments/styles/", "pygments/formatters/")
_NEEDED = {"__init__.py", "_mapping.py", "python.py", "diff.py", "terminal.py"}
"""Files of the large folders that pytest imports."""


@cache
def package_files() -> Snapshot:
    """Return the files of pytest's packages."""
    files = {}
    for name in _MODULES:
        spec = find_spec(name)
        assert spec
        assert spec.origin
        folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
        for path in [file for folder in folders for file in folder.rglob("*.py")] or [Path(spec.origin)]:
            file = path.relative_to((folders or [path])[0].parent).as_posix()
            if not file.startswith(_LARGE) or path.name in _NEEDED:
                files[file] = Entry(path.read_bytes())
    # pluggy asks for its own version.
    about = f"Metadata-Version: 2.1\nName: pluggy\nVersion: {version('pluggy')}\n"
    return {**files, "pluggy.dist-info/METADATA": Entry(about.encode())}
