"""The next step in an ``improve`` job: read the agent's source, make one edit of a table, check that the agent starts.

The edit is drawn by a hash of the problem and the source, so the same conversation always gets the same answer. Two
agents that were merged keep the first one's lines where both changed the same ones, and both where both only add.
"""

import functools
import hashlib
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from urllib.parse import unquote

from dgm.offline.solve import Decision
from dgm.offline.talk import EVERYTHING, Edit, Step, Talk, show

TABLE = Path(__file__).with_name("edits.toml")
MOST_RAISED = 2.5
_PROMPT_ENDS = ("repository. Use the tools.", "5. Remove your scripts from the repository, then submit.")
"""Lines of the shipped agents' prompts for tasks that a sentence is put behind or before."""
_ROUNDS = 60
_TRIED = 2
_CHECK = "python3 -m agent --check"
_ALLOWED = re.compile(r"^May change:\n((?:- .+\n?)+)", re.M)
_OPEN = re.compile(r"^These places are open:\n((?:- .+\n?)+)", re.M)
_PROPOSAL = re.compile(r"^Proposal: *(\S.*(?:\n(?!\s*\n).+)*)", re.M)
_QUOTED = re.compile(r"^- `([^`\n]+)`", re.M)
_UNSOLVED = re.compile(r"^- `cases/([^`/\n]+)-\d+/`: unresolved", re.M)
_PREDICT = re.compile(r"\n\nBehind that last line, say which of the problems.*?leave these lines out\.", re.S)
"""The request for predictions; draws leave it out."""
_PROMISED = 3
"""Maximum number of predictions."""
_CONFLICT = re.compile(r"^<{7,} .*\n((?:.*\n)*?)\|{7,}.*\n((?:.*\n)*?)={7,}\n((?:.*\n)*?)>{7,} .*\n?", re.M)

Files = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Kind:
    """One edit of the table."""

    name: str
    reason: str
    weight: float
    signals: frozenset[str]
    change: tuple[tuple[str, str], ...]
    sentence: str

    def apply(self, files: Files) -> tuple[Edit, ...]:
        """Return the replacements that make this edit, in order; none if it does not apply or was made before."""
        now, edits = dict(files), list[Edit]()
        if self.sentence and any(self.sentence in text for text in files.values()):
            return ()
        for old, new in self.change or self._in_prompt(files):
            where = [path for path, text in now.items() if f"\n{old}\n" in f"\n{text}"]
            added = new.replace(old, "", 1).strip() if old in new else ""
            known = bool(added) and any(added in text for text in files.values())
            if len(where) != 1 or known or now[where[0]].count(old + "\n") != 1:
                return ()
            edits.append(Edit(where[0], old + "\n", new + "\n"))
            now[where[0]] = now[where[0]].replace(old + "\n", new + "\n")
        return tuple(edits)

    def _in_prompt(self, files: Files) -> Iterator[tuple[str, str]]:
        for text in files.values():
            for line in text.split("\n"):
                if any(end in line for end in _PROMPT_ENDS):
                    yield line, f"{line}\n{self.sentence}"


_SYSTEM = '    return IMPROVE if kind == "improve" else SOLVE'
_LESSONS = """ + lessons()


def lessons():
    \"\"\"The lessons of earlier attempts; nothing if there are none.\"\"\"
    try:
        with open("memory/lessons.md", encoding="utf-8") as file:
            lines = [line for line in file if line.startswith("- ")]
    except OSError:
        return ""
    return "\\n\\nLessons of earlier attempts:\\n" + "".join(lines) if lines else \"\""""
_WHY = "Lessons of earlier attempts are of use only where the model sees them."
READ_LESSONS = Kind("read-lessons", _WHY, 1.0, frozenset(), ((_SYSTEM, _SYSTEM + _LESSONS),), "")
"""The edit of the seed ``plain`` that is made where the problem asks for it, and never drawn."""


@functools.cache
def kinds() -> tuple[Kind, ...]:
    """Return all edits of the table."""
    kinds = []
    for name, row in tomllib.loads(TABLE.read_text("utf-8")).items():
        change = tuple((old, new) for old, new in row.get("change", ()))
        signals = frozenset(row.get("signals", ()))
        kinds.append(Kind(name, row["reason"], row["weight"], signals, change, row.get("sentence", "")))
    return tuple(kinds)


def decide(talk: Talk) -> Decision:
    """Return the next step of an improvement; without moves it is finished or cannot go on."""
    opened = _OPEN.search(talk.problem)
    conflicts = _QUOTED.findall(opened[1]) if opened else []
    paths = [path for path in talk.listing if path.endswith(".py")]
    if not paths:
        if talk.times(EVERYTHING) < 2:
            return Decision("I look at the agent's source.", (EVERYTHING,))
        return Decision("DONE. Rationale: no Python source was found, so nothing was changed.")
    gaps = [gap for path in sorted({*paths, *conflicts}) if (gap := talk.view(path).gap)]
    edited = any(step.done for step in talk.steps)
    if gaps and not edited and len(talk.steps) < _ROUNDS:
        move = show(*gaps)
        # A long output may always be cut before the part in question.
        move = show(gaps[len(talk.steps) % len(gaps)]) if talk.times(move) > 1 else move
        return Decision("I read the rest of the source.", (move,))
    if gaps:
        return Decision("DONE. Rationale: the source could not be read to its end.")
    bases = {path: talk.view(path).base for path in sorted({*paths, *conflicts})}
    source = {path: "".join(base[number] + "\n" for number in sorted(base)) for path, base in bases.items()}
    merged = conflicts or "merged agent's check" in talk.problem
    return _work(talk, _settle(source) if merged else _ideas(talk, source))


def _ideas(talk: Talk, source: Files) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    general = "\nGeneral: it changes how the agent works on every problem, and speaks of none."
    asked = "memory/lessons.md" in talk.problem
    for kind in [READ_LESSONS] if asked else rank_kinds(talk.problem, source)[:_TRIED]:
        yield (
            f"{kind.reason} ({kind.name})" + general * bool(_ALLOWED.search(talk.problem)),
            kind.apply(source),
        )


def _work(talk: Talk, ideas: Iterator[tuple[str, tuple[Edit, ...]]]) -> Decision:
    """Make the first idea that leaves an agent that starts; put the others back."""
    named = re.search(r"`([^`\n]{3,120} --check)`", talk.problem)
    check = named[1] if named else _CHECK
    steps = [step for step in talk.steps if isinstance(step.move, Edit) or step.move == check]
    for reason, edits in ideas:
        for edit in edits:
            if not steps:
                return Decision(f"I make this change: {reason.partition(chr(10))[0]}", (edit,))
            if not steps.pop(0).done:
                return Decision("DONE. Rationale: the change could not be made with these tools.")
        if not steps:
            return Decision(f"I check that the agent still starts.\nRationale: {reason}", (check,))
        if _starts(steps.pop(0)):
            note = f"mkdir -p notes && echo {quote('- tried: ' + reason.partition(chr(10))[0])} >> notes/tried.md"
            if "The folder `notes/`" in talk.problem and not talk.times(note):
                return Decision("I leave a note for descendants.", (note,))
            return Decision(f"DONE.\nRationale: {reason}{_predict(talk.problem)}")
        for edit in reversed(edits):
            if not steps:
                say = "The agent does not start: I put the change back."
                return Decision(say, (Edit(edit.path, edit.new, edit.old),))
            steps.pop(0)
    return Decision("DONE. Rationale: nothing was changed, since what was tried does not start.")


def _predict(problem: str) -> str:
    """Return the predictions that a problem asks for: the edit solves the first unsolved cases that it lists."""
    cases = _UNSOLVED.findall(problem) if _PREDICT.search(problem) else []
    tasks = dict.fromkeys(unquote(case) for case in cases)
    return "".join(f"\nPredicts: {task}: it failed for want of this change" for task in [*tasks][:_PROMISED])


def _starts(step: Step) -> bool:
    return not re.search(r"Traceback|Error\b|exit status [1-9]|error:", step.result or "")


def _settle(source: Files) -> Iterator[tuple[str, tuple[Edit, ...]]]:
    """Yield two ways to settle all conflicts: both sides' additions, then the first side's lines alone."""
    said = "Both agents' changes in one program; the first one's lines where they are in conflict."
    for both in (True, False):
        edits = []
        for path, text in source.items():
            places = list(_CONFLICT.finditer(text))
            if places:
                old = text[places[0].start() : places[-1].end()]
                new = _CONFLICT.sub(lambda m, both=both: m[1] + (m[3] if both and not m[2] else ""), old)  # type: ignore[misc]
                edits.append(Edit(path, old, new))
        yield said, tuple(edits)


def rank_kinds(problem: str, source: Files) -> list[Kind]:
    """Return the edits that apply to an agent's files, in the order of a weighted draw.

    In the problem, counts such as ``step limit reached: 7 of 12`` raise weights, a list after ``May change:`` rules out
    edits of other files, and edits that fit a proposal come first.
    """
    raised = {}
    for signal, count, of in re.findall(r"- ([\w ]+): (\d{1,6}) of (\d{1,6})", problem):
        raised[signal] = 1 + (MOST_RAISED - 1) * min(1.0, int(count) / max(1, int(of)))
    weights = {
        kind: kind.weight * max((raised.get(signal, 1.0) for signal in kind.signals), default=1.0)
        for kind in applicable(source)
    }
    allowed, proposal = _ALLOWED.search(problem), _PROPOSAL.search(problem)
    if allowed:
        files = set(_QUOTED.findall(allowed[1]))
        changed = {kind: {path for path, _, _ in kind.apply(source)} for kind in weights}
        weights = {kind: weight for kind, weight in weights.items() if changed[kind] <= files}
    drawn = draw(
        weights,
        _PREDICT.sub("", problem) + "\0".join(text for item in sorted(source.items()) for text in item),
    )
    return sorted(drawn, key=lambda kind: -_fit(kind.reason, proposal[1])) if proposal else drawn


def applicable(source: Files) -> list[Kind]:
    """Return the edits that apply to a source."""
    return [kind for kind in kinds() if kind.apply(source)]


def draw(weights: Mapping[Kind, float], text: str) -> list[Kind]:
    """Return kinds in the order of a draw by weight without replacement: always the same for the same text."""
    key = " ".join(re.sub(r"/[\w./-]+|\d+\.\d+", "", text).split())
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()

    def turn(kind: Kind) -> float:
        number = int.from_bytes(hashlib.sha256(f"{digest} {kind.name}".encode()).digest()[:6], "big")
        return -math.log((number + 1) / (2**48 + 1)) / weights[kind]

    return sorted(weights, key=turn)


def _fit(reason: str, proposal: str) -> float:
    """Return the share of a reason's words that a proposal has; little counts as nothing."""
    mine, theirs = (set(re.findall(r"[a-z]{4,}", text.lower())) for text in (reason, proposal))
    share = len(mine & theirs) / max(1, len(mine))
    return share if share > 0.34 else 0.0


def apply_edits(files: Files, edits: Sequence[Edit]) -> dict[str, str]:
    """Return the files after replacements."""
    now = dict(files)
    for edit in edits:
        now[edit.path] = now[edit.path].replace(edit.old, edit.new, 1)
    return now
