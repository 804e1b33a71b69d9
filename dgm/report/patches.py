"""A diff on the page: lines with a mark and a shade each, binary files by their size, cut to the room there is."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dgm.report.markup import Html, escape_text, h

LONGEST = 1_000
"""Maximum characters of a line that are shown."""
_literal = re.compile(r"(?:literal|delta) (\d+)$").match


@dataclass(frozen=True, slots=True)
class DiffExcerpt:
    """A diff as it stands on the page."""

    html: Html
    files: int
    added: int
    removed: int
    lines: int
    """Number of lines that are shown."""


def render_diff(patch: bytes, room: int, whole: str) -> DiffExcerpt:
    """Return a diff in at most about ``room`` bytes of HTML; where it is longer, its middle is left out.

    Args:
        patch: as git writes it.
        room: bytes.
        whole: the command that prints all of it.
    """
    files = added = removed = 0
    lines: list[Html] = []
    for kind, text in _parse_lines(patch):
        files += kind == "strong"
        added += kind == "ins"
        removed += kind == "del"
        line = text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"
        lines.append(h(kind, {}, line + "\n") if kind else escape_text(line + "\n"))
    kept = _fit_lines(lines, room, whole)
    return DiffExcerpt(h("pre", {"class": "diff"}, h("code", {}, *kept)), files, added, removed, len(kept))


def _parse_lines(patch: bytes) -> Iterator[tuple[str, str]]:
    """Yield each line that is shown, with the name of its element; no element for an unchanged line."""
    inside = False
    for line in patch.decode("utf-8", "replace").split("\n"):
        if line.startswith("diff --git "):
            inside = False
            yield "strong", _parse_path(line)
        elif line.startswith("@@"):
            inside = True
            yield "b", line
        elif inside:
            if line:
                yield {"+": "ins", "-": "del", "\\": "b"}.get(line[0], ""), line
        elif found := _literal(line):
            yield "b", f"binary, {int(found[1]):,} bytes"
        elif line.startswith(("new file", "deleted file", "old mode", "new mode", "Binary")):
            yield "b", line


def _parse_path(line: str) -> str:
    """Return X of ``diff --git a/X b/X``, where both names are the same, as git quotes it."""
    names = line.removeprefix("diff --git ")
    half = names[len(names) // 2 + 1 :]
    return half.replace("b/", "", 1)


def _fit_lines(lines: Sequence[Html], room: int, whole: str) -> Sequence[Html]:
    sizes = [len(line.encode()) for line in lines]
    if sum(sizes) <= room:
        return lines
    head = _count_fitting(sizes, room * 3 // 4)
    tail = _count_fitting(sizes[head:][::-1], room // 4)
    cut = h("b", {}, f"… {len(lines) - head - tail:,} lines left out; {whole} prints them all …\n")
    return [*lines[:head], cut, *lines[len(lines) - tail :]]


def _count_fitting(sizes: Sequence[int], room: int) -> int:
    for count, size in enumerate(sizes):
        room -= size
        if room < 0:
            return count
    return len(sizes)
