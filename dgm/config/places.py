"""Paths in a settings file are relative to that file; names of what is shipped or installed stay as they are."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dgm.paths import SEEDS, asset

_URL = re.compile(r"[a-z+]+://|[\w.-]+@[\w.-]+:")
"""Addresses that git clones from elsewhere."""


def make_path_absolute(key: tuple[str, ...], value: object, folder: Path) -> Any:  # noqa: ANN401  (any TOML value)
    """Return the value of a setting; a path that it names is made absolute.

    Args:
        key: the parts of the setting's dotted name.
        value: the value in the file.
        folder: the folder of the settings file.
    """
    place = _PLACES.get(".".join(key))
    return place(value, folder) if place and isinstance(value, str) else value


def _seed_agent(value: str, folder: Path) -> str:
    # Shipped agents win over folders of the same name, as on the command line.
    return value if value in SEEDS or _URL.match(value) else _absolute(value, folder)


def _benchmark(value: str, folder: Path) -> str:
    """Make the paths among the parts of ``A+B`` absolute; keep an existing path whole that contains a ``+``."""
    words, found = value.split("+"), list[str]()
    while words:
        long = [n for n in range(len(words), 1, -1) if _exists("+".join(words[:n]), folder)]
        taken = long[0] if long else 1
        found.append(_part("+".join(words[:taken]), folder))
        words = words[taken:]
    return "+".join(found)


def _part(name: str, folder: Path) -> str:
    kind, colon, rest = name.partition(":")
    if colon:
        named = not rest or _URL.match(rest) or not (_exists(name, folder) or _is_path(rest))
        return name if named else f"{kind}:{_absolute(rest, folder)}"
    # Shipped suites win over folders of the same name, as on the command line.
    if (asset("benchmarks", name) / "suite.toml").is_file():
        return name
    beside = (folder / name / "suite.toml").is_file()
    return _absolute(name, folder) if beside or _is_path(name) else name


def _subset(value: str, folder: Path) -> str:
    return _absolute(value, folder) if value.endswith(".toml") or "/" in value else value


def _exists(name: str, folder: Path) -> bool:
    kind, colon, rest = name.partition(":")
    there = folder / Path(rest if colon else kind).expanduser()
    # Data sets of SWE-bench are named by one word, as ``swebench:lite``.
    return there.exists() if kind != "swebench" else there.is_file() and bool(there.suffix)


def _is_path(text: str) -> bool:
    return text.startswith(("~", ".")) or "/" in text


def _absolute(text: str, folder: Path) -> str:
    return str(folder.absolute() / Path(text).expanduser())


_PLACES: Mapping[str, Callable[[str, Path], str]] = {
    "benchmark": _benchmark,
    "seed_agent": _seed_agent,
    "benchmarks.swebench.subset": _subset,
}
