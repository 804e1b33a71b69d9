"""Whether two edits are near copies, judged from their words alone.

This answers requests that begin "You judge whether two edits …".
"""

import json
import re
from collections.abc import Iterator

from dgm.messages import Request, Role

ALIKE = 0.8
"""Least share of common words (Jaccard index) at which one edit is called a copy of the other."""

_PART_OF_A_PATCH = (" ", "+", "-", "@@", "diff --git ", "index ", "new ", "old ", "deleted ", "similarity ")
_FURTHER = ("GIT binary patch", "Binary files ", "literal ", "delta ", "\\ No newline", "[...")
_WORD = re.compile(r"\w+|[^\w\s]")


def answer(request: Request) -> str:
    """Return JSON with ``copy`` and ``why``; without two edits in the request there is no copy."""
    said = "\n".join(message.text for message in request.messages if message.role is Role.USER)
    edits = [_words(edit) for edit in _patches(said)][:2]
    if len(edits) < 2 or not edits[0] | edits[1]:
        return json.dumps({"copy": False, "why": "there are no two edits to compare"})
    share = len(edits[0] & edits[1]) / len(edits[0] | edits[1])
    return json.dumps(
        {"copy": share >= ALIKE, "why": f"they have {share:.0%} of the words that they change in common"}
    )


def _patches(text: str) -> Iterator[list[str]]:
    """Yield the patches in a text, each as its lines; prose separates them."""
    patch: list[str] = []
    for line in [*text.splitlines(), "."]:
        begins = line.startswith("diff --git ")
        if begins or (patch and (not line or line.startswith(_PART_OF_A_PATCH + _FURTHER))):
            patch.append(line)
        elif patch:
            yield patch
            patch = []


def _words(patch: list[str]) -> set[str]:
    """Return the words in changed lines, each prefixed with ``+`` or ``-``."""
    changed = [line for line in patch if line[:1] in ("+", "-") and not line.startswith(("+++ ", "--- "))]
    return {line[0] + word for line in changed for word in _WORD.findall(line[1:])}
