"""New agents, written from quoted members: the parent with several kinds of change at once.

Ideas of other members come first. The number of changes is drawn from a hash of the request.

* A review of a draft adds one more change or takes the last one back.
* Mending a draft that fails takes the last change back.
* An answer that could not be applied is repeated.

Earlier answers are not remembered: they are computed again.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from dgm.messages import Request, Role
from dgm.offline import editor, quoted, wishes
from dgm.offline.edits.kind import Kind, apply_edits
from dgm.offline.edits.source import edits
from dgm.offline.moves import Edit

_TITLE = re.compile(r"agent \d+'s source")
_MEMBER = re.compile(r"^- agent \d+: (.+)", re.M)
_COMPLAINT = "That cannot be used: "
_FAILED = "The draft does not pass"
_UNFIT = "Your last answer could not be applied"
_LEAST, _MOST = 2, 4
"""Least and greatest number of changes in a first draft."""

Files = Mapping[str, str]


def answer(request: Request) -> str:
    """Return the draft, or its next changes, as JSON after a sentence of prose.

    The answer is a pure function of the request.
    """
    said = [message.text for message in request.messages if message.role is Role.USER]
    asked = [text for text in said if not text.startswith(_COMPLAINT)]
    opening = asked[0] if asked else ""
    files = _parent(quoted.parse_parts(opening))
    if not files:
        return _answer("The parent's source is not shown whole.", "nothing is changed", ())
    drafts, names = [files], [""]
    for kind in _ideas(opening, files):
        found = kind.apply(drafts[-1])
        if found and len(drafts) <= _MOST + 1:
            drafts.append(apply_edits(drafts[-1], found))
            names.append(f"{kind.rationale} ({kind.name})")
    stands, wanted = _counts(asked, len(drafts) - 1)
    before, now = drafts[stands], drafts[wanted]
    made = edits(before, {path: text for path, text in now.items() if text != before[path]})
    thought = f"Of the changes that would fit, {wanted} at once: {'; '.join(names[1 : wanted + 1])}"
    return _answer(thought, " ".join(names[1 : wanted + 1]) or "nothing is changed", made)


def _answer(thought: str, rationale: str, made: Sequence[Edit]) -> str:
    listed = [{"path": edit.path, "old": edit.old, "new": edit.new} for edit in made]
    answer = {"thought": thought, "rationale": rationale, "edits": listed}
    return f"I have looked at the members.\n\n{json.dumps(answer, indent=2)}"


def _parent(parts: Mapping[str, str]) -> dict[str, str]:
    """Return the Python files of the first agent shown; empty if any of them is cut."""
    shown = next((text for title, text in parts.items() if _TITLE.fullmatch(title)), "")
    return quoted.python_files(shown)


def _ideas(opening: str, files: Files) -> Sequence[Kind]:
    """Return the applicable kinds in the editor's drawn order; those that other members mention come first."""
    others = _MEMBER.findall(opening)[1:]

    def known(kind: Kind) -> float:
        return max((wishes.fit(kind.rationale, line) for line in others), default=0.0)

    return sorted(editor.rank_kinds(opening, files), key=lambda kind: -known(kind))


def _counts(asked: Sequence[str], most: int) -> tuple[int, int]:
    """Return the number of changes in the draft, and the number wanted after all requests so far."""
    digest = hashlib.sha256(
        re.sub(r"/[\w./-]+|\d+\.\d+", "", asked[0]).encode("utf-8", "surrogatepass")
    ).digest()
    stands, wanted = 0, min(most, _LEAST + digest[0] % (_MOST - _LEAST + 1))
    for number, text in enumerate(asked[1:], 1):
        if text.startswith(_UNFIT):
            continue
        stands = wanted
        failed = text.startswith(_FAILED)
        more = not failed and digest[number % len(digest)] % 2
        # Only a draft that fails may lose its last remaining change.
        wanted = min(most, stands + 1) if more else max(0 if failed else 1, stands - 1)
    return stands, wanted
