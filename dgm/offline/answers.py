"""Answers to questions that dgm itself asks, recognised by their first words: one template for each."""

import json
import re
from collections.abc import Callable, Mapping, Sequence

from dgm.messages import Request, Role
from dgm.offline.improve import MOST_RAISED, Kind, applicable, apply_edits, draw, kinds
from dgm.offline.talk import Edit

ALIKE = 0.8
"""Least share of common words at which one edit is called a copy of another."""
_SIGNS = {
    "step limit reached": ("printed", "step limit reached", "it reached its step limit before it was done"),
    "output truncated": ("conversation", "truncated]", "it was shown output that had been cut"),
    "crashed": ("printed", "Traceback (most", "its program was ended by an error of its own"),
    "said DONE but wrong": ("conversation", "DONE", "it said that it was done although the tests fail"),
}
"""Signal → the part of a question that shows it, the words there, and what to say."""
_NO_ISSUE = {"title": "", "statement": "", "solvable": False, "why": "a repair program cannot write an issue"}
_PART = re.compile(r"^=== ([^\n]+) ===\n(.*?)(?=^=== [^\n]+ ===$|\Z)", re.M | re.S)
_FILE = re.compile(r"^--- (\S+\.py)\n(.*?)(?=^--- \S|\Z)", re.M | re.S)


def answer(request: Request) -> str | None:
    """Return the answer to a question of dgm, as JSON after a sentence of prose; ``None`` if an agent asks."""
    system = next((" ".join(m.text.split()) for m in request.messages if m.role is Role.SYSTEM), "")
    said = [message.text for message in request.messages if message.role is Role.USER]
    for begins, write in QUESTIONS.items():
        if system.startswith(begins) and said and not request.tools:
            return f"I have read it.\n\n{json.dumps(write(said), indent=2)}"
    return None


def _source(text: str, title: str) -> dict[str, str]:
    """Return the Python files in the first part of such a title; none if it was cut."""
    shown = next((part for name, part in _PART.findall(text) if re.fullmatch(title, name)), "")
    files = {path: body.strip("\n") + "\n" for path, body in _FILE.findall(shown)}
    return {} if "bytes left out ...]" in shown else files


def _issue(said: Sequence[str]) -> Mapping[str, object]:
    """Propose an edit that a better relative has and the agent lacks, or else one that the signs speak for."""
    parts = _PART.findall(said[0])
    source = _source(said[0], "the agent's source")
    possible = applicable(source) or list(kinds())
    relatives = " ".join(" ".join(text for title, text in parts if re.match(r"agent \d+: ", title)).split())
    known = {kind: kind.weight for kind in possible if kind.reason in relatives}
    signs = [name for name, (part, words, _) in _SIGNS.items()
             if any(part in title and words in text for title, text in parts)]  # fmt: skip
    seen = "; ".join(_SIGNS[name][2] for name in signs) or "it left no change at all"
    raised = {kind: kind.weight * (MOST_RAISED if kind.signals & {*signs} else 1.0) for kind in possible}
    kind = draw(known or raised, said[0])[0]
    cause = "it lacks what a relative has that solves more" if known else seen
    return {
        "log_summary": f"What can be seen is this: {cause}.",
        "problem": f"The agent goes wrong where {cause}.",
        "proposal": kind.reason,
        "general": True,
    }


def _invent(said: Sequence[str]) -> Mapping[str, object]:
    """Make two or three edits of the parent at once, members' ideas first; take back the last if the draft fails."""
    source = _source(said[0], r"agent \d+'s source")
    others = " ".join(re.findall(r"^- agent \d+: (.+)", said[0], re.M)[1:])
    weights = {kind: kind.weight * (1000 if kind.reason in others else 1) for kind in applicable(source)}
    made: list[tuple[Kind, Sequence[Edit]]] = []
    now = dict(source)
    for kind in draw(weights, said[0]):
        edits = kind.apply(now)
        if edits and len(made) < 2 + len(said[0]) % 2:
            made.append((kind, edits))
            now = apply_edits(now, edits)
    asked = [text for text in said[1:] if not text.startswith(("That cannot be used", "Your last answer"))]
    failures = sum(text.startswith("The draft does not pass") for text in asked)
    kept, todo = made[: max(0, len(made) - failures)], [edit for _, edits in made for edit in edits]
    if asked:
        back = made[len(kept) : len(kept) + 1] if asked[-1].startswith("The draft does not pass") else []
        todo = [Edit(path, new, old) for _, edits in back for path, old, new in reversed(edits)]
    reasons = [f"{kind.reason} ({kind.name})" for kind, _ in kept] or ["nothing is changed"]
    return {
        "thought": "Some edits at once.",
        "rationale": " ".join(reasons),
        "edits": [e._asdict() for e in todo],
    }


def _judge(said: Sequence[str]) -> Mapping[str, object]:
    """Compare the words in the changed lines of two patches."""
    halves = re.split(r"^The edit that is there already:$", said[0], maxsplit=1, flags=re.M)
    rows = [re.findall(r"^[+-](?![+-]{2} ).*", half, re.M) for half in halves]
    words = [{row[0] + word for row in half for word in re.findall(r"\w+|[^\w\s]", row[1:])} for half in rows]
    share = len(words[0] & words[-1]) / max(1, len(words[0] | words[-1])) if len(words) > 1 else 0.0
    return {"copy": share >= ALIKE, "why": f"they have {share:.0%} of the words that they change in common"}


def _lessons(said: Sequence[str]) -> Mapping[str, object]:
    """Return a sentence of the table as a lesson, one that the signs speak for and that is not known yet."""
    parts = _PART.findall(said[0])
    signs = {name for name, (part, words, _) in _SIGNS.items()
             if any("unsolved" in title and part in title and words in text for title, text in parts)}  # fmt: skip
    weights = {
        kind: kind.weight * (MOST_RAISED if kind.signals & signs else 1.0)
        for kind in kinds()
        if kind.sentence and kind.sentence not in said[0]
    }
    return {"lessons": [{"lesson": kind.sentence, "contrasts": [1]} for kind in draw(weights, said[0])[:1]]}


def _judge_work(said: Sequence[str]) -> Mapping[str, object]:
    """Take a criterion as met if the work has half of its longer words."""
    criteria, _, work = said[0].partition("§§§ conversation §§§")
    words = set(re.findall(r"\w{4,}", work.partition("§§§ end §§§")[0].lower()))
    wanted = [set(re.findall(r"\w{4,}", line.lower())) for line in re.findall(r"^\d+\. (.+)", criteria, re.M)]
    return {"met": [2 * len(each & words) >= len(each) for each in wanted], "why": "by common words"}


QUESTIONS: Mapping[str, Callable[[Sequence[str]], Mapping[str, object]]] = {
    "You diagnose a coding agent.": _issue,
    "You compare coding agents.": _issue,
    "You revise how a coding agent works.": _issue,
    "You improve a group of coding agents.": _issue,
    "You distil lessons for a coding agent.": _lessons,
    "You write a coding agent.": _invent,
    "You judge whether two edits": _judge,
    "You judge whether a coding agent worked": _judge_work,
    "You write issues for a software project.": lambda _: _NO_ISSUE,
}
"""First words of the system text → the function that writes the answer from the user's messages."""
