"""Match paths against a ``.dockerignore`` by the rules of Docker's documentation.

The last pattern that matches a file, or a folder above it, decides; ``!`` takes it in again. ``**`` stands for any
number of folders. ``NAME.dockerignore`` beside the Dockerfile NAME wins over ``.dockerignore`` at the top.
"""

import posixpath
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase

from dgm.domain import Snapshot
from dgm.errors import UserError

MOST_PATTERNS, MOST_PARTS = 500, 2000
RULES = ".dockerignore"
_ESCAPED = re.compile(r"\\(.)")


def docker_context(files: Snapshot, dockerfile: str = "Dockerfile") -> Snapshot:
    """Return the files of a folder that its Dockerfile may copy, and the Dockerfile itself.

    Raises:
        UserError: there are too many patterns.
    """
    rules = next((files[name] for name in (f"{dockerfile}{RULES}", RULES) if name in files), None)
    if rules is None:
        return files
    patterns = _read_patterns(rules.data.decode("utf-8-sig", "replace"))
    return {
        name: entry for name, entry in files.items() if name == dockerfile or not _is_ignored(name, patterns)
    }


Pattern = tuple[bool, tuple[str, ...]]
"""True for a pattern with ``!``, which takes files in again; and the parts of the pattern."""


def _read_patterns(text: str) -> Sequence[Pattern]:
    patterns = []
    for line in text.splitlines():
        again, plain = line.strip().startswith("!"), line.strip().removeprefix("!").strip()
        path = re.sub(r"(?:\*\*/)+", "**/", posixpath.normpath(plain).lstrip("/"))
        if plain and not line.startswith("#") and path not in (".", ""):
            patterns.append((again, tuple(map(_translate, path.split("/")))))
    if len(patterns) > MOST_PATTERNS or sum(len(parts) for _, parts in patterns) > MOST_PARTS:
        raise UserError(
            f"{RULES}: more than {MOST_PATTERNS} patterns, or {MOST_PARTS} folders in them; use fewer"
        )
    return patterns


def _translate(part: str) -> str:
    """Return a part of a pattern as ``fnmatch`` writes it."""
    negated = part.replace("[^", "[!")
    return _ESCAPED.sub(lambda found: f"[{found[1]}]" if found[1] in "*?[" else found[1], negated)


def _is_ignored(name: str, patterns: Sequence[Pattern]) -> bool:
    parts = tuple(name.split("/"))
    return next((not again for again, pattern in reversed(patterns) if _matches(parts, pattern)), False)


def _matches(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return whether a pattern matches a path or one of the folders above it."""
    places = {0}
    for part in parts:
        for place in sorted(places):
            # Two stars may stand for no folder at all.
            while pattern[place] == "**" and place + 1 < len(pattern):
                place += 1
                places.add(place)
        stars = {place for place in places if pattern[place] == "**"}
        following = {place + 1 for place in places - stars if fnmatchcase(part, pattern[place])}
        if len(pattern) in following or len(pattern) - 1 in stars:
            return True
        places = stars | following
    return False
