"""The content of a Dockerfile that is known without a build: its base, its workdir, and its copies there."""

import json
import posixpath
import re
import shlex
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from dgm.dockerignore import docker_context
from dgm.domain import Entry, Snapshot
from dgm.folders import read_below, read_folder

LIMIT_BYTES = 1_000_000
MAX_COPIES = 200
"""Further copies are left out."""
SILENT = frozenset(
    {"FROM", "CMD", "ENTRYPOINT", "LABEL", "MAINTAINER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "SHELL"}
)
"""Instructions without an effect on a workspace."""
_RECIPES = ("Dockerfile", "docker-compose.yaml", ".dockerignore", "Dockerfile.dockerignore")
"""Files of a context that ``COPY .`` leaves out: an image's recipe is not a part of the workspace."""
LINE_CHARS = 2_000
"""Characters of a script's line that are searched for an installation."""
_INSTALLS = re.compile(
    r"\b(apt-get|apt|apk|pip3?|uv|uvx|npm|npx|cargo|go|curl|wget)\b.*(install|add|https?://|-w |--with)"
)
_REMOTE = re.compile(r"://|git@")
_MAKES_FOLDERS = re.compile(r"^mkdir(\s+-p)?(\s+[\w./-]+)+$")
_VARIABLE = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True, slots=True)
class Dockerfile:
    """The last stage of a Dockerfile."""

    bases: tuple[str, ...]
    workdir: str
    """The workdir; empty if the Dockerfile names none."""
    workspace: Snapshot
    """The files that it copies into the workdir."""
    left_out: tuple[str, ...]
    """Instructions that a workspace cannot carry, one line each."""


def read_dockerfile(file: Path) -> Dockerfile:
    """Read a Dockerfile; its folder, without what ``.dockerignore`` names, is the context for the copied files.

    Raises:
        UserError: a link in its folder leads out of it, something there is no file, or it ignores too much.
    """
    bases: list[str] = []
    copies: list[tuple[str, list[str]]] = []
    left_out: list[str] = []
    workdir = ""
    text = read_below(file.parent, file.name, LIMIT_BYTES).decode("utf-8", "replace")
    for word, rest in _instructions(text):
        match word:
            case "FROM":
                bases.append(_words(rest)[0] if rest else "")
                workdir, copies, left_out = "", [], []
            case "WORKDIR":
                workdir = _absolute(workdir, rest.strip().strip("\"'"))
            case "COPY" | "ADD" if _is_plain_copy(rest) and len(copies) < MAX_COPIES:
                copies.append((workdir, _words(rest)))
            case "RUN" if _MAKES_FOLDERS.match(rest):
                pass
            case _ if word not in SILENT:
                left_out.append(f"{word} {' '.join(rest.split())[:120]}")
    files, outside = _collect_copies(docker_context(read_folder(file.parent), file.name), copies, workdir)
    return Dockerfile(tuple(bases), workdir, files, (*left_out, *outside))


def _is_plain_copy(rest: str) -> bool:
    return not rest.startswith("--from") and "://" not in rest


def installs(line: str) -> bool:
    """Return whether a line of a script seems to install something, which needs a network."""
    return bool(_INSTALLS.search(line[:LINE_CHARS]))


def wants_network(text: str) -> bool:
    """Return whether the steps of a Dockerfile seem to need a network."""
    return any(
        (word == "RUN" and installs(rest)) or (word == "ADD" and _REMOTE.search(rest))
        for word, rest in _instructions(text)
    )


def _instructions(text: str) -> Sequence[tuple[str, str]]:
    joined = re.sub(
        r"\\[ \t]*\n", " ", "\n".join(line for line in text.splitlines() if not _is_comment(line))
    )
    split = (line.strip().split(None, 1) for line in joined.splitlines() if line.strip())
    return [(words[0].upper(), words[1] if len(words) > 1 else "") for words in split]


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith("#")


def _words(rest: str) -> list[str]:
    """Return the words after an instruction's options."""
    plain = re.sub(r"^(\s*--\S+)+", "", rest).strip()
    try:
        words = json.loads(plain) if plain.startswith("[") else shlex.split(plain)
    except (ValueError, RecursionError):
        words = plain.split()
    return [str(word) for word in words] or [""]


def _collect_copies(
    context: Snapshot, copies: Sequence[tuple[str, list[str]]], workdir: str
) -> tuple[Snapshot, Sequence[str]]:
    found: dict[str, Entry] = {}
    outside: list[str] = []
    for here, words in copies:
        *sources, target = words
        place = _absolute(here, target)
        inside = bool(workdir) and f"{place}/".startswith(workdir.rstrip("/") + "/")
        files = _collect_sources(context, sources, into_folder=target.endswith("/") or target in (".", "./"))
        below = posixpath.relpath(place, workdir) if inside else ""
        placed = {posixpath.normpath(posixpath.join(below, name)): entry for name, entry in files.items()}
        if not inside or not placed or not _fits(placed, found) or _VARIABLE.search(" ".join(words)):
            outside.append(f"COPY {' '.join(words)[:120]}")
            continue
        found |= placed
    return found, outside


def _absolute(folder: str, name: str) -> str:
    """Return the place of a name in an image, without ``..`` and doubled slashes."""
    return "/" + posixpath.normpath(posixpath.join(folder or "/", name)).lstrip("/")


def _fits(placed: Snapshot, found: Snapshot) -> bool:
    """Return whether no file would be written through a link or a file, or over a folder."""
    names = placed.keys() | found.keys()
    return "." not in names and not any(
        str(parent) in names for name in names for parent in PurePosixPath(name).parents
    )


def _collect_sources(context: Snapshot, sources: Sequence[str], *, into_folder: bool) -> Snapshot:
    """Return the files that Docker would put at the target: a folder's content, or one file under the target's name."""
    found: dict[str, Entry] = {}
    single = len(sources) == 1 and not into_folder and not any(c in sources[0] for c in "*?[")
    for source in sources:
        pattern = posixpath.normpath(source.strip("/") or ".")
        for name, entry in context.items():
            inner = _below(name, pattern)
            if inner is None or (pattern == "." and name in _RECIPES):
                continue
            if inner:
                found[inner] = entry
            elif stat.S_ISREG(entry.mode):
                found["" if single else posixpath.basename(name)] = entry
    return found


def _below(name: str, pattern: str) -> str | None:
    """Return the rest of the name below what the pattern names, empty for the file itself; None for other files."""
    parts, wanted = name.split("/"), [] if pattern == "." else pattern.split("/")
    if len(parts) < len(wanted) or not all(map(fnmatchcase, parts, wanted)):
        return None
    return "/".join(parts[len(wanted) :])
