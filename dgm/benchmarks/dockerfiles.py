"""The content of a Dockerfile that is known without a build: its base, its workdir, and its copies there."""

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from dgm.benchmarks.workspaces import read_folder
from dgm.domain import Entry, Snapshot

SILENT = frozenset(
    {"FROM", "CMD", "ENTRYPOINT", "LABEL", "MAINTAINER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "SHELL"}
)
"""Instructions without an effect on a workspace."""
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
    """Read a Dockerfile; its folder is the context for the copied files."""
    bases: list[str] = []
    copies: list[tuple[str, list[str]]] = []
    left_out: list[str] = []
    workdir = ""
    for word, rest in _instructions(file.read_text(encoding="utf-8", errors="replace")):
        match word:
            case "FROM":
                bases.append(_words(rest)[0] if rest else "")
                workdir, copies, left_out = "", [], []
            case "WORKDIR":
                workdir = str(PurePosixPath(workdir or "/") / rest.strip().strip("\"'"))
            case "COPY" | "ADD" if not rest.startswith("--from") and "://" not in rest:
                copies.append((workdir, _words(rest)))
            case "RUN" if _MAKES_FOLDERS.match(rest):
                pass
            case _ if word not in SILENT:
                left_out.append(f"{word} {' '.join(rest.split())[:120]}")
    files, outside = _collect_copies(file.parent, copies, workdir)
    return Dockerfile(tuple(bases), workdir, files, (*left_out, *outside))


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
    except ValueError:
        words = plain.split()
    return [str(word) for word in words] or [""]


def _collect_copies(
    context: Path, copies: Sequence[tuple[str, list[str]]], workdir: str
) -> tuple[Snapshot, Sequence[str]]:
    found: dict[str, Entry] = {}
    outside: list[str] = []
    for here, words in copies:
        *sources, target = words
        place = PurePosixPath(here or "/") / target
        inside = bool(workdir) and (str(place) + "/").startswith(workdir.rstrip("/") + "/")
        files = _collect_sources(context, sources, into_folder=target.endswith("/") or target in (".", "./"))
        if not inside or not files or _VARIABLE.search(" ".join(words)):
            outside.append(f"COPY {' '.join(words)}")
            continue
        below = place.relative_to(workdir)
        for name, entry in files.items():
            found[str(below / name) if name else str(below)] = entry
    return found, outside


def _collect_sources(context: Path, sources: Sequence[str], *, into_folder: bool) -> Snapshot:
    """Return the files that Docker would put at the target: a folder's content, or one file under the target's name."""
    found: dict[str, Entry] = {}
    single = len(sources) == 1 and not into_folder and not any(c in sources[0] for c in "*?[")
    for source in sources:
        pattern = source.strip("/")
        paths = [context] if pattern in ("", ".") else sorted(context.glob(pattern))
        for path in paths:
            if not path.resolve().is_relative_to(context.resolve()):
                continue
            if path.is_dir():
                found |= {
                    name: each for name, each in read_folder(path).items() if _is_copied(path, context, name)
                }
            elif path.is_file():
                mode = 0o100755 if path.stat().st_mode & 0o100 else 0o100644
                found["" if single else path.name] = Entry(path.read_bytes(), mode)
    return found


def _is_copied(path: Path, context: Path, name: str) -> bool:
    """Return whether ``COPY .`` should bring a file: an image's recipe is not a part of the workspace."""
    return path != context or name not in ("Dockerfile", "docker-compose.yaml", ".dockerignore")
