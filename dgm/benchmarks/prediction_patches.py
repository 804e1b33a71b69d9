"""Predictions of other programs: made into a patch that git reads, and applied in the sandbox that grades them.

Every grader puts ``APPLIER`` into its sandbox, runs it on ``normalised_patch`` of what it was given, and reads what
it says with ``read_applied``. An agent's own patch passes as it is.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dgm.errors import Infrastructure
from dgm.protocols import Grade

APPLIER = Path(__file__).with_name("apply_patch.py")
BOM = b"\xef\xbb\xbf"
CRLF_NOTE = "the lines of the patch ended in CR LF and were read without CR"
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NAMES = (b"diff --git ", b"--- ", b"+++ ", b"@@ ")


@dataclass(frozen=True, slots=True)
class NormalisedPatch:
    """A patch as git reads it."""

    data: bytes
    """Empty where there is nothing to apply."""
    notes: tuple[str, ...] = ()
    """What was read otherwise than it stands there."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What applying a patch came to."""

    refused: str = ""
    """Git's reason; empty where the patch was applied."""
    notes: tuple[str, ...] = ()
    """What was needed to make it fit."""


def normalised_patch(patch: bytes) -> NormalisedPatch:
    """Return the patch without a byte order mark, with an end of its last line, its headers without CR.

    Where all lines that name files and places end in CR LF, the patch was converted on its way, and one CR is taken
    from every line. Mails as ``git format-patch`` writes them need nothing: git reads the diffs in them.
    """
    data = patch.removeprefix(BOM)
    if not data.strip():
        return NormalisedPatch(b"")
    if not data.endswith(b"\n"):
        data += b"\n"
    if b"\r\n" not in data:
        return NormalisedPatch(data)
    lines = data.removesuffix(b"\n").split(b"\n")
    headers = _headers(lines)
    named = [n for n in headers if lines[n].startswith(_NAMES)]
    if named and all(lines[n].endswith(b"\r") for n in named):
        return NormalisedPatch(_joined(line.removesuffix(b"\r") for line in lines), (CRLF_NOTE,))
    inside = set(headers)
    return NormalisedPatch(
        _joined(line.removesuffix(b"\r") if n in inside else line for n, line in enumerate(lines))
    )


def read_applied(output: bytes) -> Applied:
    """Return what the applier said in its last line.

    Raises:
        Infrastructure: it did not get as far, or the image lacks what it needs.
    """
    lines = output.decode("utf-8", "replace").strip().split("\n")
    word, _, rest = lines[-1].partition(" ")
    match word:
        case "applied":
            return Applied(notes=tuple(filter(None, rest.split("; "))))
        case "refused":
            return Applied(refused=rest or "git gives no reason")
        case "broken":
            raise Infrastructure(rest)
        case _:
            raise Infrastructure(f"the patch could not be tried: {lines[-1][-200:] or 'no output'}")


def with_notes(grade: Grade, notes: Sequence[str]) -> Grade:
    """Return the grade with what is to be known of the patch behind its reason."""
    return replace(grade, reason="; ".join([grade.reason, *dict.fromkeys(notes)])) if notes else grade


def _headers(lines: Sequence[bytes]) -> Sequence[int]:
    """The numbers of the lines that are in no hunk."""
    found: list[int] = []
    old = new = 0
    for n, line in enumerate(lines):
        if old > 0 or new > 0:
            old -= line[:1] in (b"-", b" ", b"", b"\r")
            new -= line[:1] in (b"+", b" ", b"", b"\r")
            continue
        found.append(n)
        if hunk := _HUNK.match(line):
            old, new = (1 if count is None else int(count) for count in hunk.groups())
    return found


def _joined(lines: Iterable[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
