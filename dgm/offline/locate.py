"""Where a fault may be: the words and the example of a problem, what tests printed, and which lines ran."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from dgm.offline.mutate import Unit
from dgm.offline.talk import Talk

_WORD = re.compile(r"[A-Za-z][a-z]{2,30}|[A-Z]{2,12}(?![a-z])")
_NAME = re.compile(
    r"`([A-Za-z_][\w.]{0,80})(?:\([^`]{0,120}\))?`|\b([A-Za-z_]\w{1,60})\(|\b([a-z]+_\w{1,60})\b"
    r"|\b([A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+|[A-Z]\w+Error)\b"
)
_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)
_EXPECTED = re.compile(r"^Expected:\s*`(.{1,2000}?)`\s*$", re.M)
_CALLED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\(|\.([A-Za-z_]\w*)\b")
_BEHIND = {
    r"\bstr\(|\bprint\(|f\"": "__str__", r"\blen\(": "__len__", r"\b\w+ (?:not )?in\b": "__contains__",
    r"\blist\(|\bsorted\(|\bfor\b": "__iter__", r" == ": "__eq__", r" & ": "__and__", r" \| ": "__or__",
    r" - ": "__sub__", r" \+ ": "__add__", r" \* ": "__mul__", r" < |\bsorted\(|\bm(?:ax|in)\(": "__lt__",
    r"\w\[": "__getitem__", r"\]\s*= ": "__setitem__", r" / ": "__truediv__", r"\b[A-Z]\w*\(": "__init__",
}  # fmt: skip
_STOP = frozenset(
    (  # noqa: SIM905  (a text reads better than a hundred quoted words)
        "the and for that this with from not are was has have had but all any its into out one two should must when "
        "what which while than then them they there their can does did will would could also only even who how why our "
        "you your been being were over under very more most some such each other another own same just like expected "
        "example import python work repository done comes gets give given gives make made instead right wrong after "
        "always never although though because before between about without whether still say says said use used uses "
        "using want way well where here now try assert true false none self return def class test"
    ).split()
)
_RAN = re.compile(r"^Ran \d+ tests? in .*$", re.M)
_PASSED = re.compile(r"^(?:OK(?: \(.*\))?|=+ .*\b\d+ passed.* =*|\d+ passed.*)\s*$", re.M)
_FAILED = re.compile(r"^(?:FAILED \(.*\)|=+ .*\b\d+ (?:failed|error).*|\d+ failed.*)\s*$", re.M)
_FAILING = re.compile(r"^(?:FAIL|ERROR): (\w+) \(([\w.]+)\)", re.M)
_FRAME = re.compile(r'^ {2}File "([^"\n]{1,300})", line (\d+), in [\w<>.]+\n(?: {4}(.*)\n)?', re.M)
_RAISED = re.compile(r"^(?:\w+\.){0,6}\w{0,60}(?:Error|Exception|Iteration)(?::.*)?$", re.M)
_RAN_LINES = re.compile(r"^ran ([\w./-]+\.py) ([\d ]+)$", re.M)
_OUTCOME = re.compile(r"^EXAMPLE (RIGHT|WRONG)\b", re.M)

PROBE = "/tmp/probe.py"
_SCRIPT = """import json, os, sys, traceback
sys.path.insert(0, os.getcwd())
lines, expected, raises = json.loads({what!r})
here, ran, scope = os.getcwd() + os.sep, {{}}, {{}}


def note(frame, event, argument):
    name = frame.f_code.co_filename
    if name.startswith(here):
        ran.setdefault(name[len(here):], set()).add(frame.f_lineno)
        return note


try:
    for line in lines[:-1]:
        exec(line, scope)
    sys.settrace(note)
    outcome = repr(eval(lines[-1], scope))
    good = not raises and outcome == expected
except Exception as error:
    outcome = type(error).__name__
    good = raises and outcome == expected.split(".")[-1]
    good or traceback.print_exc(file=sys.stdout)
sys.settrace(None)
print("EXAMPLE " + ("RIGHT" if good else "WRONG: " + outcome[:300]))
for path in sorted(ran):
    print("ran", path, *sorted(ran[path])[:200])
"""


class Problem(NamedTuple):
    """A problem statement, parsed; the most telling names of code come first, an example has an expected result."""

    text: str
    words: frozenset[str]
    names: tuple[str, ...]
    called: frozenset[str]
    example: tuple[str, ...]
    expected: str


@dataclass
class Evidence:
    """What the runs so far showed; of frames outside tests the deepest is last."""

    frames: dict[tuple[str, int], None] = field(default_factory=dict)
    failing: dict[str, None] = field(default_factory=dict)
    tested: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)
    ran: dict[str, set[int]] = field(default_factory=dict)

    def reached(self, path: str, first: int, last: int) -> bool:
        """Return whether the example runs any of some lines."""
        return any(first <= line <= last for line in self.ran.get(path, ()))


@lru_cache(maxsize=64)
def parse_problem(problem: str) -> Problem:
    """Parse a problem."""
    rows = problem[:20_000].split("\n")
    kept = (row for row in rows if not re.fullmatch(r"\s*[\w./-]+\.\w{1,5}\s*|The repository is in .*", row))
    text = "\n".join(kept)
    prose, expected, lines = _FENCE.sub(" ", text), _EXPECTED.search(text), list[str]()
    for row in "\n".join(_FENCE.findall(text)).split("\n"):
        if row.startswith(">>> "):
            lines.append(row[4:])
        elif row.startswith("...") and lines:
            lines[-1] += "\n" + row[4:]
    code = names_called("\n".join(lines or _FENCE.findall(text)))
    dotted = [next(group for group in match.groups() if group) for match in _NAME.finditer(prose)]
    names = dict.fromkeys(part for name in dotted for part in name.split(".") if len(part) > 1)
    example, wanted = (tuple(lines), expected[1]) if expected and len(lines) <= 60 else ((), "")
    ordered = (*names, *sorted(code - names.keys()))
    return Problem(text, frozenset(words_of(prose)), ordered, code, example, wanted)


def words_of(text: str) -> list[str]:
    """Return the content words of prose or code without their endings; identifiers are split."""
    words = (word.lower() for word in _WORD.findall(text.replace("_", " ")))
    return [re.sub(r"(?<=\w{4})(?:ings?|ies|ed|es|s|e)$", "", word) for word in words if word not in _STOP]


def names_called(code: str) -> frozenset[str]:
    """Return the names that code calls or takes as attributes, and the methods behind its operators."""
    calls = {one or two for one, two in _CALLED.findall(code[:20_000])}
    calls |= {name for pattern, name in _BEHIND.items() if re.search(pattern, code[:20_000])}
    return frozenset(calls - {"self", "assertEqual", "assertTrue", "assertRaises"})


def is_test(path: str) -> bool:
    """Return whether a path is that of a test."""
    return bool(re.search(r"(?:^|/)tests?/|(?:^|/)test_\w+\.py$", path))


def verdict(text: str) -> bool | None:
    """Return whether the tests passed in an output; ``None`` if it does not say."""
    if _FAILED.search(text) or _FAILING.search(text):
        return False
    ran = list(_RAN.finditer(text))
    return True if _PASSED.search(text, ran[-1].end() if ran else 0) else None


def example_verdict(text: str) -> bool | None:
    """Return whether the example gave what is expected; ``None`` if the output does not say."""
    outcomes = _OUTCOME.findall(text)
    return outcomes[-1] == "RIGHT" if outcomes else None


def probe_command(problem: Problem) -> str:
    """Return the command that runs the example, and prints what came of it and which lines its last one runs."""
    raises = bool(re.fullmatch(r"(?!None|True|False|Ellipsis)(?:\w+\.)*[A-Z]\w*", problem.expected))
    script = _SCRIPT.format(what=json.dumps([problem.example, problem.expected, raises]))
    return f"cat > {PROBE} <<'END_OF_SCRIPT'\n{script}END_OF_SCRIPT\npython3 {PROBE}"


def gather(talk: Talk) -> Evidence:
    """Collect what the runs so far showed; failures that an edit caused count only if there are no others."""
    evidence, edited = Evidence(), False
    for step in talk.steps:
        edited = edited or step.done
        if not step.result or "grep -n ''" in str(step.move):
            continue
        for path, numbers in _RAN_LINES.findall(step.result) if not edited else ():
            evidence.ran[path] = {int(number) for number in numbers.split()}
        failed = verdict(step.result) is False and not evidence.failing
        if failed or (example_verdict(step.result) is False and not edited):
            for name, where in _FAILING.findall(step.result) if failed else ():
                evidence.failing[where if where.endswith("." + name) else f"{where}.{name}"] = None
            evidence.messages += _RAISED.findall(step.result)
            for path, number, source in _FRAME.findall(step.result):
                _add_frame(evidence, talk, path, int(number), source)
    return evidence


def _add_frame(evidence: Evidence, talk: Talk, path: str, number: int, source: str) -> None:
    known = (name for name in (*talk.listing, *talk.files) if path == name or path.endswith("/" + name))
    name = next(known, None)
    if name and is_test(name):
        evidence.tested |= names_called(source)
    elif name:
        evidence.frames[name, number] = None


def score_units(units: Sequence[Unit], problem: Problem, evidence: Evidence) -> Mapping[Unit, float]:
    """Return the suspicion of each unit; what suspicious units call gains from them, what did not run loses."""
    scores = {unit: _score(unit, problem, evidence) for unit in units}
    called = {unit: names_called("\n".join(unit.lines[1:])) for unit in units}
    for weight in (0.4, 0.16):
        spread = dict(scores)
        for unit, score in scores.items():
            for other in units if score >= 2 else ():
                if other is not unit and other.name in called[unit] and spread[other] < score:
                    spread[other] += weight * score
        scores = spread
    for unit in units if evidence.ran else ():
        reached = evidence.reached(unit.path, unit.first + 1, unit.last)
        scores[unit] *= 1.6 if reached else 0.1
    return scores


def _score(unit: Unit, problem: Problem, evidence: Evidence) -> float:
    score = 0.2
    if unit.name in problem.names:
        score += 2.5 if unit.name in problem.names[:3] else 1.8
    score += 1.2 * (unit.name in problem.called) + 2.5 * (unit.name in evidence.tested)
    score += 0.5 * (bool(unit.owner) and unit.owner in problem.names)
    frames = [at for at in evidence.frames if at[0] == unit.path and unit.first <= at[1] <= unit.last]
    if frames:
        score += 4.5 if frames[-1] == list(evidence.frames)[-1] else 3.0
    score += 0.8 * len(problem.words.intersection(words_of(f"{unit.name} {unit.owner}")))
    score += min(2.0, 0.25 * len(problem.words.intersection(words_of("\n".join(unit.lines)))))
    return score if unit.lines[0].lstrip().startswith(("def ", "async ")) else 0.5 * score


def score_line(unit: Unit, line: int, problem: Problem, evidence: Evidence) -> float:
    """Return the suspicion of a line relative to the rest of its unit."""
    row = unit.lines[min(max(line - unit.first, 0), len(unit.lines) - 1)].strip()
    weight = 1.0 + 0.25 * min(3, len(problem.words.intersection(words_of(row))))
    if evidence.ran.get(unit.path) and line > unit.first and not evidence.reached(unit.path, line, line + 1):
        weight *= 0.1
    if (unit.path, line) in evidence.frames:
        weight *= 2.0
    if re.match(r"(?:log|logger|logging|print|warnings)\b", row):
        weight *= 0.1
    if row.startswith("raise ") and not re.search(r"Error|rais|refus|reject|exception", problem.text):
        weight *= 0.3
    return weight
