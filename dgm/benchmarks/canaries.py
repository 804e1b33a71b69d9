"""Patches that solve nothing but end the process that imports them with status 0: no sound test command takes them."""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dgm.domain import Entry, Snapshot

_NAMED = re.compile(rb"^(?:---|\+\+\+) [ab]/([^\t\n]+)\t?$", re.MULTILINE)
_ADDED = re.compile(rb"^--- /dev/null\n\+\+\+ b/([^\t\n]+)\t?$", re.MULTILINE)
_NODE = (".js", ".mjs", ".cjs")
AT_ONCE, AT_THE_END = "as soon as it is imported", "when its process ends"
_PYTHON = {
    AT_ONCE: b"import os\nos._exit(0)\n",
    AT_THE_END: b"import atexit, os\natexit.register(os._exit, 0)\n",
}
_JAVASCRIPT = {
    AT_ONCE: b"process.exit(0);\n",
    AT_THE_END: b'process.on("exit", () => process.reallyExit(0));\n',
}


@dataclass(frozen=True, slots=True)
class Canary:
    """A patch that no test command must take for a fix."""

    when: str
    """When its code ends the process with status 0."""
    patch: bytes


def make_canaries(workspace: Snapshot, reference: bytes) -> Sequence[Canary]:
    """Return a patch for each way to end a process, in the Python and JavaScript files that the reference fix touches.

    Args:
        workspace: the task's workspace; empty if it is inside an image, where only files that the fix adds are known.
        reference: the reference fix as a patch.
    """
    from dgm.archive.repository import patch

    named = {name.decode("utf-8", "replace") for name in _NAMED.findall(reference)} & workspace.keys()
    named |= {name.decode("utf-8", "replace") for name in _ADDED.findall(reference)}
    found = []
    for when in _PYTHON:
        changed = {name: entry for name in named if (entry := _end_early(name, workspace, when))}
        if changed:
            found.append(Canary(when, patch(workspace, {**workspace, **changed})))
    return found


def _end_early(name: str, workspace: Snapshot, when: str) -> Entry | None:
    before = workspace.get(name, Entry(b""))
    if name.endswith(".py"):
        return Entry(_insert(before.data, _PYTHON[when]), before.mode)
    if name.endswith(_NODE):
        return Entry(_JAVASCRIPT[when] + before.data, before.mode)
    return None


def _insert(source: bytes, code: bytes) -> bytes:
    """Return a Python file with the code before everything but imports from ``__future__``, which must come first."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return code + source
    ends = [node.end_lineno or 0 for node in tree.body if _is_future(node)]
    lines = source.splitlines(keepends=True)
    at = max(ends, default=0)
    return b"".join([*lines[:at], code, *lines[at:]])


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"
