"""The files that an agent leaves, chosen as a person would commit them.

Files that were put in stay. New files are dropped in three cases:

* the repository ignores them;
* they are byte code, caches or environments;
* the agent's contract calls them its own litter.

The largest new files are left out, with a note, so that a fix is not lost to the size of an artefact.
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dgm.archive.repository import patch, scratch_objects
from dgm.archive.snapshots import LINK, is_git_name, write_folder
from dgm.domain import Snapshot
from dgm.errors import AgentFault
from dgm.protocols import Sandbox
from dgm.sandboxes.transfer import MAX_FILES, get_files, list_files

RULES = ".gitignore"
ENVIRONMENT = "pyvenv.cfg"
"""A folder with this file is a Python virtual environment, whatever its name."""
NEVER_COMMITTED = (
    "__pycache__/",
    "*.py[co]",
    "*.egg-info/",
    ".pytest_cache/",
    ".mypy_cache/",
    ".ruff_cache/",
    ".hypothesis/",
    ".tox/",
    ".nox/",
    ".venv/",
    "node_modules/",
    ".DS_Store",
)
"""Byte code, caches and environments, as ``.gitignore`` patterns."""
NEW_BYTES = 8_000_000
"""Limit on all new files of a patch together, in bytes: nobody commits more by hand."""
NAMED = 3
"""Maximum number of files that a note names."""
NAME_LIMIT = 60
"""Maximum number of characters of a name in a note."""


@dataclass(frozen=True, slots=True)
class FolderChange:
    """A folder after an agent's work, and its difference from the folder before."""

    files: Snapshot
    patch: bytes
    left_out: Mapping[str, int] = field(default_factory=dict)
    """New files that were too large → their bytes."""


def find_ignored(files: Snapshot, names: Iterable[str], patterns: Sequence[str] = ()) -> frozenset[str]:
    """Return the ``names`` that the folder's ``.gitignore`` files, ``NEVER_COMMITTED`` or ``patterns`` ignore.

    The caller decides which files are new: git's rules apply only to files that it does not track.

    Args:
        files: the folder; only its ``.gitignore`` files are read.
        names: paths of regular files or links in the folder.
        patterns: further ``.gitignore`` patterns; the folder's own rules take precedence.

    Raises:
        UserError: git is not installed.
        Infrastructure: git takes too long.
    """
    candidates = sorted({*names})
    environments = tuple(
        name.removesuffix(ENVIRONMENT) for name in candidates if name.endswith(f"/{ENVIRONMENT}")
    )
    ignored = {name for name in candidates if name.startswith(environments)}
    # Names that git reserves would abort the whole query, and one that begins with ":" would be read as a pattern.
    query = [b"./" + os.fsencode(n) + b"\0" for n in candidates if n not in ignored and not is_git_name(n)]
    if not query:
        return frozenset(ignored)
    rules = {
        name: entry
        for name, entry in files.items()
        if name.rpartition("/")[2] == RULES and entry.mode != LINK and not is_git_name(name)
    }
    with scratch_objects() as scratch:
        tree, excludes = scratch.repository / "tree", scratch.repository / "excludes"
        write_folder(rules, tree)
        excludes.write_text("\n".join([*NEVER_COMMITTED, *patterns, ""]), encoding="utf-8")
        options = ["-C", str(tree), "--work-tree=.", "-c", f"core.excludesFile={excludes}"]
        words = [*options, "check-ignore", "--no-index", "-z", "--stdin"]
        output = scratch.run(*words, data=b"".join(query), highest_status=1)
    return frozenset(ignored | {os.fsdecode(name[2:]) for name in output.split(b"\0") if name})


def drop_ignored_files(before: Snapshot, after: Snapshot, litter: Sequence[str] = ()) -> Snapshot:
    """Return ``after`` without new files that a person would not commit.

    Args:
        before: the folder as it was put in; all its files count as tracked.
        after: the folder as the agent left it.
        litter: patterns of the agent's contract (``find_ignored``).
    """
    dropped = find_ignored(after, after.keys() - before.keys(), litter)
    return {name: entry for name, entry in after.items() if name not in dropped} if dropped else after


def keep_hidden_files(before: Snapshot, after: Snapshot, hidden: Sequence[str]) -> Snapshot:
    """Return ``after`` with the hidden files as they were put in, also if the program that puts them back was killed.

    Args:
        before: the folder as it was put in.
        after: the folder as the agent left it.
        hidden: patterns of the agent's contract: paths with ``*``, and ``**`` for any folders.
    """
    if not hidden:
        return after
    fits = re.compile("|".join(f"(?:{_expression_of(pattern)})" for pattern in hidden)).fullmatch
    kept = {name: entry for name, entry in before.items() if fits(name)}
    return dict(sorted({**after, **kept}.items()))


def _expression_of(pattern: str) -> str:
    """Return the regular expression of the files that a pattern names, or that are below a folder that it names."""
    parts = [
        "(?:[^/]+/)*" if part == "**" else re.escape(part).replace(r"\*", "[^/]*") + "/"
        for part in pattern.split("/")
    ]
    return "".join(parts).removesuffix("/") + "(?:/.*)?"


async def read_large(
    sandbox: Sandbox, folder: str, before: Snapshot, litter: Sequence[str], limit_bytes: int
) -> tuple[Snapshot, Mapping[str, int]]:
    """Read a folder that exceeds its limit: all files that were put in, and new ones as far as there is room.

    Returns:
        the files, and the new ones that were left out for their size.

    Raises:
        AgentFault: stage ``size``: the files that were put in are too large by themselves now, or there are too
            many files to list.
        Infrastructure: the sandbox failed.
    """
    sizes = await list_files(sandbox, folder)
    rules = [name for name in sizes if name.rpartition("/")[2] == RULES]
    written = await get_files(sandbox, folder, rules, limit_bytes)
    tracked = [name for name in sizes if name in before]
    new = sizes.keys() - before.keys()
    new -= find_ignored(written, new, litter)
    chosen = _choose_smallest(
        {name: sizes[name] for name in new},
        limit_bytes - sum(sizes[name] for name in tracked),
        MAX_FILES - len(tracked),
    )
    files = await get_files(sandbox, folder, [*tracked, *chosen], limit_bytes)
    return dict(sorted(files.items())), {name: sizes[name] for name in sorted(new - set(chosen))}


def fit_patch(before: Snapshot, after: Snapshot, limit_bytes: int, *, cut: bool = True) -> FolderChange:
    """Return the patch between two folders, without the largest new files if it would be too long with them.

    Args:
        before: the folder as it was put in.
        after: the folder as it was left.
        limit_bytes: of the patch.
        cut: whether new files may be left out at all.

    Raises:
        AgentFault: stage ``patch``: it is longer than ``limit_bytes`` even without any new file.
    """
    new = {name: len(entry.data) for name, entry in after.items() if name not in before}
    diff = patch(before, after)
    if len(diff) <= limit_bytes and (not cut or sum(new.values()) <= NEW_BYTES):
        return FolderChange(after, diff)
    if not cut:
        raise _patch_too_long(diff, limit_bytes)
    tracked = {name: entry for name, entry in after.items() if name in before}
    base = patch(before, tracked)
    if len(base) > limit_bytes:
        raise _patch_too_long(base, limit_bytes)
    # Base85 takes five bytes for four, and every file has a header.
    costs = {name: size * 4 // 3 + 400 for name, size in new.items()}
    chosen = set(_choose_smallest(costs, min(NEW_BYTES, limit_bytes - len(base)), len(costs)))
    files = {name: entry for name, entry in after.items() if name in before or name in chosen}
    diff = patch(before, files)
    if len(diff) > limit_bytes:
        files, diff, chosen = tracked, base, set()
    return FolderChange(files, diff, {name: size for name, size in new.items() if name not in chosen})


def format_left_out(left_out: Mapping[str, int]) -> str:
    """Return one clause on new files that were too large, naming the largest; empty if there are none."""
    if not left_out:
        return ""
    largest = sorted(left_out, key=lambda name: -left_out[name])
    names = ", ".join(_make_printable(name[-NAME_LIMIT:]) for name in largest[:NAMED]) + (
        " …" if len(largest) > NAMED else ""
    )
    files = "1 new file" if len(largest) == 1 else f"{len(largest)} new files"
    return f"left out of the patch: {files} of {sum(left_out.values()):,} bytes ({names})"


def _make_printable(name: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in name)


def _patch_too_long(diff: bytes, limit_bytes: int) -> AgentFault:
    return AgentFault("patch", f"the patch has {len(diff)} bytes; {limit_bytes} are allowed")


def _choose_smallest(sizes: Mapping[str, int], room: int, count: int) -> list[str]:
    chosen: list[str] = []
    for name in sorted(sizes, key=lambda name: (sizes[name], name))[: max(0, count)]:
        room -= sizes[name]
        if room < 0:
            break
        chosen.append(name)
    return chosen
