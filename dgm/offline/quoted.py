"""Parts that the host quotes under titles when it asks about an agent, among them the agent's source."""

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping

from dgm.messages import Request, Role
from dgm.offline.edits.kind import Kind

_TITLE = re.compile(r"=== (.+) ===")
_FILE = re.compile(r"^--- (\S.*)\n", re.M)
_CUT = re.compile(r"\[\.\.\. \d+ bytes left out \.\.\.\]")
_SOURCE = "the agent's source"


def question(request: Request) -> str:
    """Return the host's first message; later messages complain about answers and change nothing."""
    return next((message.text for message in request.messages if message.role is Role.USER), "")


def parse_parts(text: str) -> dict[str, str]:
    """Return the quoted text by title; the first part wins if titles are equal."""
    found: dict[str, list[str]] = {}
    rows: list[str] | None = None
    for line in text.split("\n"):
        title = _TITLE.fullmatch(line)
        if title:
            rows = [] if title[1] in found else found.setdefault(title[1], [])
        elif rows is not None:
            rows.append(line)
    return {title: "\n".join(rows).strip() for title, rows in found.items()}


def source(quoted: Mapping[str, str]) -> dict[str, str]:
    """Return the agent's Python files, in the form of ``python_files``."""
    return python_files(quoted.get(_SOURCE, ""))


def python_files(shown: str) -> dict[str, str]:
    """Return the non-empty Python files of a quoted source by path; none if any file is cut."""
    if _CUT.search(shown):
        return {}
    pieces = _FILE.split("\n" + shown)[1:]
    files = dict(zip(pieces[::2], pieces[1::2], strict=True))
    return {
        path: text.rstrip("\n") + "\n"
        for path, text in files.items()
        if path.endswith(".py") and text.strip()
    }


def find_applicable(kinds: Iterable[Kind], files: Mapping[str, str]) -> list[Kind]:
    """Return the kinds that find something to change; all kinds if the source is not known."""
    known = list(kinds)
    return [kind for kind in known if kind.transform(files)] if files else known


def draw_kind(weights: Mapping[Kind, float], text: str) -> Kind:
    """Draw one of the kinds in proportion to the weights: always the same for the same text.

    Absolute paths and decimal fractions do not count, as in ``editor.ranking``.
    """
    key = " ".join(re.sub(r"/[\w./-]+|\d+\.\d+", "", text).split())
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

    def turn(kind: Kind) -> tuple[float, str]:
        number = int.from_bytes(hashlib.sha256(f"{digest} {kind.name}".encode()).digest()[:6], "big")
        return -math.log((number + 1) / (2**48 + 1)) / weights[kind], kind.name

    return min(weights, key=turn)


def write_issue(summary: str, problem: str, kind: Kind) -> str:
    """Return the answer that proposes a kind of change."""
    answer = {"log_summary": summary, "problem": problem, "proposal": kind.rationale, "general": True}
    return f"I have read what the agent did.\n\n{json.dumps(answer, indent=2)}"
