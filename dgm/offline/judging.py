"""Whether two edits are near copies: the answer to "You judge whether two edits …", from their words alone."""

import json
import re
from collections.abc import Iterator

from dgm.messages import Request, Role

ALIKE = 0.8
"""Share of the words of both edits that both have, from which on one is called a copy."""

_PART_OF_A_PATCH = (" ", "+", "-", "@@", "diff --git ", "index ", "new ", "old ", "deleted ", "similarity ")
_FURTHER = ("GIT binary patch", "Binary files ", "literal ", "delta ", "\\ No newline", "[...")
_WORD = re.compile(r"\w+|[^\w\s]")


def answer(request: Request) -> str:
    """JSON with ``copy`` and ``why``; two edits that cannot be found in the request are no copies."""
    said = "\n".join(message.text for message in request.messages if message.role is Role.USER)
    edits = [_words(edit) for edit in _patches(said)][:2]
    if len(edits) < 2 or not edits[0] | edits[1]:
        return json.dumps({"copy": False, "why": "there are no two edits to compare"})
    share = len(edits[0] & edits[1]) / len(edits[0] | edits[1])
    return json.dumps(
        {"copy": share >= ALIKE, "why": f"they have {share:.0%} of the words that they change in common"}
    )


def _patches(text: str) -> Iterator[list[str]]:
    """The patches in a text, each as its lines; prose stands between them."""
    patch: list[str] = []
    for line in [*text.splitlines(), "."]:
        begins = line.startswith("diff --git ")
        if begins or (patch and (not line or line.startswith(_PART_OF_A_PATCH + _FURTHER))):
            patch.append(line)
        elif patch:
            yield patch
            patch = []


def _words(patch: list[str]) -> set[str]:
    """Words in changed lines, each with whether it was added or removed."""
    changed = [line for line in patch if line[:1] in ("+", "-") and not line.startswith(("+++ ", "--- "))]
    return {line[0] + word for line in changed for word in _WORD.findall(line[1:])}
