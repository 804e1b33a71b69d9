"""The list of the evidence that stands in the task of an agent at work on its own source."""

import re
from collections.abc import Sequence

from dgm.domain import Snapshot
from dgm.meta.evidence.layout import INDEX

EVIDENCE_FOLDER = "/run/evidence"
"""Folder of a sandbox in which evidence is mounted read-only."""
EVIDENCE_PUT = "/job/evidence"
"""Folder in which evidence is put with the other files of a job."""
_MOST_LINES = 40
"""Maximum lines of the list."""
_MOST_CHARS = 160
"""Maximum characters of a line."""
_ENTRY = re.compile(r"(?:- )?(`[^`]+/`): (.*)")
_BYTES = re.compile(r" \(\d+ bytes\)$")


def describe_evidence(evidence: Snapshot, *, mounted: bool, also: Sequence[str] = ()) -> str:
    """Return where the evidence lies, and what it holds: a line for each case and each agent, in the index's order.

    Args:
        evidence: the folder.
        mounted: whether it is mounted; else it is put with the job's files.
        also: further lines, which stand first.
    """
    if not evidence:
        return "There is no evidence of what it did yet."
    index = evidence[INDEX].data.decode("utf-8", "replace").splitlines() if INDEX in evidence else []
    entries = [*also, *(line for line in map(_describe_entry, index) if line)]
    left = len(entries) - _MOST_LINES
    shown = entries[:_MOST_LINES] + ([f"- and {left} more"] if left > 0 else [])
    place = EVIDENCE_FOLDER if mounted else EVIDENCE_PUT
    head = (
        f"The evidence lies in `{place}`; its `{INDEX}` is the index. A case is a folder with the problem, the whole"
        " conversation, the patch and what the tests said."
    )
    return "\n".join([head, *shown])


def _describe_entry(line: str) -> str:
    """Return one line of the list for a line of the index; empty if it names no folder."""
    found = _ENTRY.match(line)
    if found is None:
        return ""
    text = " ".join(f"- {found[1]}: {_BYTES.sub('', found[2])}".split())
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 3] + "..."
