"""The next step on a task: look, edit, test, try the next candidate, finish.

The habits are those of a programmer in a hurry; what the system text asks for changes them.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

from dgm.offline import locate
from dgm.offline.locate import Evidence, Problem, is_test, words_of
from dgm.offline.mutate import Candidate, Unit, candidates, find_units
from dgm.offline.talk import Change, Edit, FileView, Habit, Move, Talk, Window, asks, show

LIST = "find . -type f -not -path '*/.*' -not -name '*.pyc' | sort | head -300"
TESTS = "python3 -m unittest"
_FOUND = re.compile(r"^(?:\./)?([\w./-]+\.py):(\d+):\s*(?:async +)?(?:def|class) +(\w+)", re.M)
_UNITS, _MOST, _PER_FILE = 16, 800, 5
_SYMPTOMS = {
    r"white ?space|blanks?\b|spaces?\b|trailing|padding|indent": ("strip", 2.5),
    r"upper|lower|capital|\bcase\b|letters": ("lower", 2.5),
    r"shared?\b|leak|only look|original|in place|modif|also change|changes? (?:the|my)|\bcop(?:y|ies)\b|alike": (
        "missing (?:copy|list|dict|set|sorted|tuple)", 2.2),
    r"negative|absolute|\bsign\b|below zero|minus|opposite|direction": ("abs|arithmetic", 2.0),
    r"\border|sorted|alphabet|rank|newest|oldest|highest|latest|descending": (
        "missing (?:sorted|reversed|int|list)|off by one|relation|flag", 1.8),
    r"exact|bound|edge|\blast\b|\bfirst\b|one too|too (?:many|few|long|short|late|early|much)|touch|beyond"
    r"|\blimit|at least|at most|equal|end(?:s|ing)?\b|just|until|full": ("relation|off by one|drop operand", 1.6),
    r"\bzero\b|\b0\b|empty|\bnone\b|missing|absent|without|unset|fallback": ("to None|to truth|connective", 2.0),
    r"instead\b.{0,80}\berror|error\b.{0,80}instead|not an? `?\w+Error|crash|fails with": ("exception", 2.5),
    r"twice|double|duplicate|again|counted": ("missing set|delete|move|accumulate|truth", 1.5),
    r"\blost\b|loses?|forg[eo]t|gone|disappear|add(?:s|ed)? up|total|sum\b": ("accumulate|move|sibling", 1.6),
    r"default|by itself|unless told": ("to None|flag|off by one", 2.0),
    r"larg|small|long(?:er|est)|short(?:er|est)|max|min|wid(?:er|est)|most|least|utf": ("sibling|relation", 1.5),
    r"only the (?:first|last)|(?:later|other) ones?|the rest|stops?\b|every one": ("move|delete", 2.2),
    r"\bfloat|decimal|round|cents?\b|fraction|half": ("arithmetic|missing (?:int|round|str)|sibling", 1.5),
    r"swap|revers|other way|backward|mirror|upside": ("relation|reversed|flag|arithmetic", 1.8),
    r"ignor|no effect|belongs? to|of the (?:other|wrong)|another|confus": ("other name", 1.7),
}  # fmt: skip
"""Words of a problem or a message → the kinds that they make likelier, and by how much."""


class Decision(NamedTuple):
    """The text to say and the moves to make; without moves the work ends."""

    say: str
    moves: tuple[Move, ...] = ()


class _Trial(NamedTuple):
    """What became of an edit until the next one."""

    state: frozenset[tuple[str, Change]]
    """What is changed in the files; empty after the last edit was taken back."""
    tests: bool | None
    example: bool | None
    runs: int
    """Number of runs of tests that were shown, with a verdict or not."""


@dataclass(frozen=True)
class _Situation:
    """A talk with all that follows from it, each part computed at most once."""

    talk: Talk

    @cached_property
    def problem(self) -> Problem:
        return locate.parse_problem(self.talk.problem)

    @cached_property
    def evidence(self) -> Evidence:
        return locate.gather(self.talk)

    @cached_property
    def trials(self) -> list[_Trial]:
        trials = list[_Trial]()
        for step in self.talk.steps:
            last = _Trial(step.state, None, None, 0) if step.done else trials.pop() if trials else None
            tests, example = locate.verdict(step.result or ""), locate.example_verdict(step.result or "")
            runs = step.result is not None and ("unittest" in str(step.move) or tests is not None)
            if last:
                tests, example = (
                    new if new is not None else old
                    for new, old in zip((tests, example), last[1:3], strict=True)
                )
                trials.append(_Trial(last.state, tests, example, last.runs + runs))
        return trials

    @cached_property
    def order(self) -> list[str]:
        score = dict.fromkeys((*self.talk.listing, *self.talk.files), 0.0)
        gains = [(path, self.weight_of(name)) for path, _, name in self.hits]
        gains += [(path, 3.0) for path, _ in self.evidence.frames]
        gains += [(path, min(4.0, 1.0 + 0.1 * len(lines))) for path, lines in self.evidence.ran.items()]
        for path, gain in gains:
            score[path] = score.get(path, 0.0) + gain
        for path in score:
            name = path.rpartition("/")[2].removesuffix(".py")
            known = bool(self.problem.words.intersection(words_of(name))) or name in self.problem.names
            score[path] += 1.5 * known - 3.0 * bool(re.fullmatch(r"__\w+__|setup|errors|exceptions", name))
        code = (path for path in score if path.endswith(".py") and not is_test(path))
        return sorted(code, key=lambda path: (-score[path], path))

    @cached_property
    def hits(self) -> list[tuple[str, int, str]]:
        texts = [step.result or "" for step in self.talk.steps if str(step.move).startswith("grep -rn")]
        return [(path, int(line), name) for text in texts for path, line, name in _FOUND.findall(text)]

    def weight_of(self, name: str) -> float:
        named, tested = name in self.problem.names, name in self.evidence.tested
        return 0.4 + 3 * named + 3 * tested + (name in self.problem.called)

    @cached_property
    def units(self) -> tuple[Unit, ...]:
        paths = sorted(path for path in self.talk.files if path.endswith(".py") and not is_test(path))
        return tuple(unit for path in paths for unit in find_units(self.talk.files[path]))

    def likelihood_of(self, kind: str) -> float:
        """Return how much likelier the words make a kind of change."""
        words = self.problem.text[:8000] + "\n" + "\n".join(self.evidence.messages[:4])
        active = (
            by
            for said, (kinds, by) in _SYMPTOMS.items()
            if re.search(kinds, kind) and re.search(said, words, re.I)
        )
        errors = {
            self.problem.expected,
            *self.problem.names,
            *(m.split(":")[0] for m in self.evidence.messages),
        }
        likely = min(4.0, math.prod(active))
        if kind.startswith("exception"):
            likely *= 3.0 if kind.split()[1] in {name.rpartition(".")[2] for name in errors} else 0.6
        return likely

    @cached_property
    def ranked(self) -> list[tuple[float, Candidate]]:
        """All candidates, the best first: place × prior × words, less for more of the same."""
        scores = locate.score_units(self.units, self.problem, self.evidence)
        plain: list[tuple[float, Candidate]] = []
        factors: dict[object, float] = {}
        for unit in sorted(self.units, key=lambda unit: (-scores[unit], unit))[:_UNITS]:
            for one in candidates(unit, tuple(other for other in self.units if other.path == unit.path)):
                if one.kind not in factors:
                    factors[one.kind] = self.likelihood_of(one.kind)
                if (unit, one.line) not in factors:
                    factors[unit, one.line] = locate.score_line(unit, one.line, self.problem, self.evidence)
                place = scores[unit] ** 1.4 * factors[unit, one.line]
                plain.append((place * one.prior * factors[one.kind], one))
        plain.sort(key=_place)
        seen: dict[object, int] = {}
        ranked = []
        for score, one in plain[:_MOST]:
            row = (one.unit.path, one.line)
            same, before = seen.get((*row, one.kind), 0), seen.get(row, 0)
            seen[(*row, one.kind)], seen[row] = same + 1, before + 1
            ranked.append((score * 0.5**same * 0.9**before, one))
        return sorted(ranked, key=_place)

    @property
    def has_example(self) -> bool:
        return any(locate.example_verdict(step.result or "") is not None for step in self.talk.steps)

    def asks(self, habit: Habit) -> bool:
        return asks(self.talk.system, habit)

    @property
    def tests(self) -> str:
        """The command that runs the tests: chosen ones, if that is asked for or the output of all was cut."""
        cut = any(trial.runs and trial.tests is None for trial in self.trials)
        return " ".join((TESTS, *self.relevant_tests[: 3 if self.asks(Habit.TARGETED) or cut else 0]))

    @cached_property
    def relevant_tests(self) -> tuple[str, ...]:
        """Dotted names of test modules: those of the failing tests, else the one that fits best."""
        failing = {name.rsplit(".", 2)[0] for name in self.evidence.failing}
        near = "/test_" + (self.order[0].rpartition("/")[2] if self.order else "")

        def fit(path: str) -> tuple[float, str]:
            return -len(self.problem.words.intersection(words_of(path))) - 2.0 * path.endswith(near), path

        paths = sorted((p for p in self.talk.listing if re.search(r"(?:^|/)test_\w+\.py$", p)), key=fit)
        names = [path.removesuffix(".py").replace("/", ".") for path in paths]
        return tuple(name for name in names if name in failing) or tuple(names[:1])


def _place(item: tuple[float, Candidate]) -> tuple[float, str, int, str, bytes]:
    score, one = item
    return -score, one.unit.path, one.line, one.kind, one.source


def decide(talk: Talk) -> Decision:
    """Return the next step on a task."""
    if not {"replace", "shell"} & talk.tools.keys():
        return Decision("There is no tool I could change a file with. DONE")
    now = _Situation(talk)
    return _after_edit(now) if now.trials else _look(now) or _read(now) or _try_next(now)


def _look(now: _Situation) -> Decision | None:
    """List the files, run the tests or the example, and search, before anything is read."""
    talk, search = now.talk, _search(now, ())
    tested = any(step.result and str(step.move).startswith(TESTS) for step in talk.steps)
    proof = now.asks(Habit.REPRODUCE)
    probe = locate.probe_command(now.problem)
    several = (search,) if now.asks(Habit.SEVERAL) else ()
    tests = now.asks(Habit.TESTS_FIRST) or (proof and not now.problem.example)
    for wanted, say, *moves in (
        (not talk.listing, "Listing the files first.", LIST, *several),
        (tests and not tested, "Running the tests before any change.", TESTS),
        (proof and now.problem.example and not now.has_example, "Running the example by a script.", probe),
        (True, "Searching for what the problem names.", search),
    ):
        # A move that was made twice without effect tells that the scaffold shows no results.
        shown = any(step.move == moves[0] and step.result is not None for step in talk.steps)
        if "shell" in now.talk.tools and wanted and not shown and talk.times(moves[0]) < 2:
            return Decision(say, tuple(moves))
    return None


def _search(now: _Situation, extra: Sequence[str]) -> str:
    """Return the command that finds the definitions of names in the problem, or of other names."""
    names = list(extra) or [name for name in now.problem.names if re.fullmatch(r"\w+", name)][:12]
    words = [] if extra else [rf"\w*{word}\w*" for word in sorted(now.problem.words) if len(word) > 3][:30]
    pattern = "|".join(dict.fromkeys([*names, *words])) or r"\w+"
    return f"grep -rniE '^ *(async +)?(def|class) +({pattern})\\b' --include='*.py' --exclude-dir=tests ."


def _read(now: _Situation, path: str = "", why: str = "") -> Decision | None:
    """Read a file, the best one where none is named, and the parts of it that matter."""
    path = path or next(iter(now.order), "")
    move = show(Window(path)) if path not in now.talk.files else _next_window(now, path)
    if path and move and now.talk.times(move) < 2 and _views(now, path) < 8:
        return Decision(f"Reading {path}{why}.", (move,))
    return None


def _views(now: _Situation, path: str) -> int:
    return sum(f"grep -n '' {path}" in str(step.move) for step in now.talk.steps)


def _next_window(now: _Situation, path: str) -> str | None:
    """Return the command that shows the most suspicious function of a file that was not seen to its end."""
    view = now.talk.view(path)
    if view.gap is None:
        return None
    lines = [line for name, line in reversed(list(now.evidence.frames)) if name == path]
    hits = sorted((hit for hit in now.hits if hit[0] == path), key=lambda hit: -now.weight_of(hit[2]))
    lines += [line for _, line, name in hits if now.weight_of(name) >= 3] + sorted(
        now.evidence.ran.get(path, ())
    )
    seen = [(unit.first, unit.last) for unit in find_units(view)]
    for line in lines:
        move = show(Window(path, max(1, line - 12), line + 48))
        if not any(first <= line <= last for first, last in seen) and not now.talk.times(move):
            return move
    return None


def _after_edit(now: _Situation) -> Decision:
    """Judge the present candidate, then finish or go on."""
    trial, last = now.trials[-1], now.talk.steps[-1].move
    if trial.tests is False or trial.example is False or not trial.state:
        return _gather_more(now) or _try_next(now)
    example = f"python3 {locate.PROBE}" if now.has_example and trial.example is None else ""
    command = "; ".join(part for part in (example, now.tests if trial.tests is None else "") if part)
    if command and command != last and trial.runs < 3 and not now.asks(Habit.NO_TESTS):
        return Decision("Checking the change.", (command,))
    return Decision("The problem is fixed. DONE")


def _gather_more(now: _Situation) -> Decision | None:
    """After a failed candidate, look at what the evidence names and nothing showed yet."""
    known = {name for _, _, name in now.hits} | {unit.name for unit in now.units}
    unknown = sorted(name for name in now.evidence.tested - known if len(name) > 2)
    searches = sum(str(step.move).startswith("grep -rn") for step in now.talk.steps)
    if unknown and "shell" in now.talk.tools and searches < 3 and not now.talk.times(_search(now, unknown)):
        return Decision("Searching for what the failing test calls.", (_search(now, unknown),))
    frames = list(dict.fromkeys(path for path, _ in reversed(now.evidence.frames)))[:2]
    decision = next((d for path in frames if (d := _read(now, path, ", where the error comes from"))), None)
    opened = sum(path.endswith(".py") and not is_test(path) for path in now.talk.files)
    return decision or (_widen(now) if len(now.trials) >= _PER_FILE * max(1, opened) else None)


def _widen(now: _Situation) -> Decision | None:
    """Read another file, or unseen parts of an open one."""
    for path in now.order[:6]:
        gap = now.talk.view(path).gap
        move = show(gap) if gap else None
        if move and _views(now, path) < 6 and now.talk.times(move) < 2:
            return Decision(f"Reading on in {path}.", (move,))
    return None


def _try_next(now: _Situation) -> Decision:
    return _try_candidates(now) or _widen(now) or Decision("I found no further change to try. DONE")


def _try_candidates(now: _Situation) -> Decision | None:
    """Replace the present candidate by the best one that is left, and test it if several calls are welcome."""
    tried = {state for trial in now.trials for state in trial.state}
    left = (one for _, one in now.ranked[:400] if one.change and (one.unit.path, one.change) not in tried)
    changed = [view for view in now.talk.files.values() if view.change]
    best = list(islice(left, 8))
    # To change to another file takes a step of its own.
    for one in chain(sorted(best, key=lambda one: bool(changed) and one.unit.path != changed[0].path), left):
        back = next((_edit_to(view, None) for view in changed if view.path != one.unit.path), None)
        if back:
            return Decision("Taking the last edit back.", (back,))
        edit = _edit_to(now.talk.view(one.unit.path), one.change)
        if edit and not now.talk.times(edit):
            check = f"python3 {locate.PROBE}; {now.tests}" if now.has_example else now.tests
            several = now.asks(Habit.SEVERAL) and "shell" in now.talk.tools and not now.asks(Habit.NO_TESTS)
            moves = (edit, check) if several else (edit,)
            return Decision(f"Trying an edit ({one.kind}, line {one.line}).", moves)
    return None


def _edit_to(view: FileView, wanted: Change | None) -> Edit | None:
    """Return the one edit that leads from the present file to its first state with a change, or with none."""
    changes = [change for change in (view.change, wanted) if change]
    first, end = min(c.first for c in changes), max(c.first + len(c.old) for c in changes)
    for margin in range(60):
        base = [(n, view.base[n]) for n in range(first - margin, end + margin) if n in view.base]
        if base and base[-1][0] - base[0][0] >= len(base):
            return None
        old, new = ("".join(row + "\n" for row in _with(base, change)) for change in (view.change, wanted))
        if old and view.text.count(old) == 1:
            return Edit(view.path, old, new)
    return None


def _with(base: Sequence[tuple[int, str]], change: Change | None) -> list[str]:
    if change is None:
        return [row for _, row in base]
    end = change.first + len(change.old)
    before, after = [row for n, row in base if n < change.first], [row for n, row in base if n >= end]
    return [*before, *change.new, *after]
