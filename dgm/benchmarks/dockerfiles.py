"""The content of a Dockerfile that is known without a build: its base, its workdir, and its copies there."""

import json
import posixpath
import re
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from dgm.domain import Entry, Snapshot
from dgm.folders import docker_context, read_below, read_folder

LIMIT_BYTES = 1_000_000
MAX_COPIES = 200
"""Further copies are left out."""
LINE_CHARS = 2_000
"""Characters of a script's line that are searched for an installation."""
SILENT = frozenset(
    {
        "ARG",
        "FROM",
        "CMD",
        "ENTRYPOINT",
        "LABEL",
        "MAINTAINER",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "SHELL",
    }
)
"""Instructions without an effect on a workspace."""
_RECIPES = ("Dockerfile", "docker-compose.yaml", ".dockerignore", "Dockerfile.dockerignore")
"""Files of a context that ``COPY .`` leaves out: an image's recipe is not a part of the workspace."""
_INSTALLS = re.compile(
    r"\b(apt-get|apt|apk|pip3?|uv|uvx|npm|npx|cargo|go|curl|wget)\b.*(install|add|https?://|-w |--with)"
)
_REMOTE = re.compile(r"://|git@")
_MAKES_FOLDERS = re.compile(r"^mkdir(\s+-p)?(\s+[\w./-]+)+$")
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)(?::?-([^}]*))?\})")
_HEREDOC = re.compile(r"<<-?[\"']?(\w+)[\"']?")


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


def read_dockerfile(file: Path, workdir: str = "") -> Dockerfile:
    """Read a Dockerfile; its folder, without what ``.dockerignore`` names, is the context for the copied files.

    Args:
        file: the Dockerfile.
        workdir: where agents work, in place of the last WORKDIR.

    Raises:
        UserError: a link in its folder leads out of it, something there is no file, or it ignores too much.
    """
    bases: list[str] = []
    copies: list[tuple[str, list[str]]] = []
    left_out: list[str] = []
    here, variables = "", dict[str, str]()
    text = read_below(file.parent, file.name, LIMIT_BYTES).decode("utf-8", "replace")
    for word, rest in _instructions(text):
        match word:
            case "FROM":
                bases.append(_words(rest)[0])
                here, copies, left_out = "", [], []
            case "WORKDIR":
                here = _absolute(here, _expand(rest.strip().strip("\"'"), variables))
            case "COPY" | "ADD" if _is_plain_copy(rest) and len(copies) < MAX_COPIES:
                copies.append((here, [_expand(part, variables) for part in _words(rest)]))
            case "RUN" if _MAKES_FOLDERS.match(rest):
                pass
            case _ if word not in SILENT:
                left_out.append(f"{word} {' '.join(rest.split())[:120]}")
        if word in ("ENV", "ARG"):
            variables |= _assignments(rest, variables)
    files, outside = _collect_copies(
        docker_context(read_folder(file.parent), file.name), copies, workdir or here
    )
    return Dockerfile(tuple(bases), workdir or here, files, (*left_out, *outside))


def installs(line: str) -> bool:
    """Return whether a line of a script seems to install something, which needs a network."""
    return bool(_INSTALLS.search(line[:LINE_CHARS]))


def wants_network(text: str) -> bool:
    """Return whether the steps of a Dockerfile seem to need a network."""
    return any(
        (word == "RUN" and installs(rest)) or (word == "ADD" and _REMOTE.search(rest))
        for word, rest in _instructions(text)
    )


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    plain = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    lines = iter(re.sub(r"\\[ \t]*\n", " ", plain).splitlines())
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        if not word:
            continue
        for end in _HEREDOC.findall(rest) if word.upper() in ("RUN", "COPY", "ADD") else ():
            body = []
            for inner in lines:
                if inner.strip() == end:
                    break
                body.append(inner)
            if word.upper() == "RUN":
                rest = " ".join([rest, *body])
        yield word.upper(), rest.strip()


def _is_plain_copy(rest: str) -> bool:
    return not rest.startswith("--from") and "://" not in rest and "<<" not in rest


def _words(rest: str) -> list[str]:
    """Return the words after an instruction's options."""
    plain = re.sub(r"^(\s*--\S+)+", "", rest).strip()
    try:
        words = json.loads(plain) if plain.startswith("[") else shlex.split(plain)
    except (ValueError, RecursionError):
        words = plain.split()
    return [str(word) for word in words] or [""]


def _assignments(rest: str, variables: Mapping[str, str]) -> Mapping[str, str]:
    """Return the variables that an ``ENV`` or ``ARG`` sets: ``A=1 B=2``, or ``A 1``."""
    words = _words(rest)
    pairs = [word.partition("=")[::2] for word in words if "=" in word]
    if "=" not in words[0]:
        pairs = [(words[0], " ".join(words[1:]))] if len(words) > 1 else []
    return {name: _expand(value, variables) for name, value in pairs}


def _expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace the variables that are known."""

    def replace(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return variables.get(name, match[0] if match[3] is None else match[3])

    return _VARIABLE.sub(replace, text)


def _collect_copies(
    context: Snapshot, copies: Sequence[tuple[str, list[str]]], workdir: str
) -> tuple[Snapshot, Sequence[str]]:
    workspace: dict[str, Entry] = {}
    outside: list[str] = []
    for here, words in copies:
        *sources, target = words
        place = _absolute(here, target)
        inside = bool(workdir) and f"{place}/".startswith(workdir.rstrip("/") + "/")
        files = _collect_sources(context, sources, into_folder=target.endswith("/") or target in (".", "./"))
        below = posixpath.relpath(place, workdir) if inside else ""
        placed = {posixpath.normpath(posixpath.join(below, name)): entry for name, entry in files.items()}
        if not inside or not placed or not _fits(placed, workspace) or "$" in " ".join(words):
            outside.append(f"COPY {' '.join(words)[:120]}")
            continue
        workspace |= placed
    return workspace, outside


def _absolute(folder: str, name: str) -> str:
    """Return the place of a name in an image, without ``..`` and doubled slashes."""
    return "/" + posixpath.normpath(posixpath.join(folder or "/", name)).lstrip("/")


def _fits(placed: Snapshot, workspace: Snapshot) -> bool:
    """Return whether no file would be written through a link or a file, or over a folder."""
    names = placed.keys() | workspace.keys()
    return "." not in names and not any(
        str(parent) in names for name in names for parent in PurePosixPath(name).parents
    )


def _collect_sources(context: Snapshot, sources: Sequence[str], *, into_folder: bool) -> Snapshot:
    """Return the files that Docker would put at the target: a folder's content, or one file under the target's name."""
    files: dict[str, Entry] = {}
    single = len(sources) == 1 and not into_folder and not any(c in sources[0] for c in "*?[")
    for source in sources:
        pattern = posixpath.normpath(source.strip("/") or ".")
        wanted = [] if pattern == "." else pattern.split("/")
        for name, entry in context.items():
            parts = name.split("/")
            if len(parts) < len(wanted) or not all(map(fnmatchcase, parts, wanted)):
                continue
            if inner := "/".join(parts[len(wanted) :]):
                if wanted or name not in _RECIPES:
                    files[inner] = entry
            elif stat.S_ISREG(entry.mode):
                files["" if single else parts[-1]] = entry
    return files
