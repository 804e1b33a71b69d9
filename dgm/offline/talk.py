"""What one request shows: its tools, the model's own calls with their results, and the files as far as they were seen.

A scaffold may cut, drop or rename whatever it likes, so the model knows only what stands in the request, and of a file
only lines whose neighbours were shown with them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from shlex import quote
from typing import NamedTuple

from dgm.bounded_reading import parse_literal
from dgm.messages import Request, Role, Tool, ToolCall

_FIND = "find . -name '*.py' -not -path '*/.*' | sort"
EVERYTHING = f"{_FIND}; for f in $({_FIND}); do wc -l $f; grep -n '' $f; done; echo '== end'"
"""List and show every Python file."""
_NAMES = {
    "command": r"^(command|cmd|script|commandline|input)$",
    "path": r"path|file",
    "old": r"^(old|search|find|before|original|target)(_|str|$)|_old$",
    "new": r"^(new|replace|replacement|after|with)(_|str|$)|_new$",
    "first": r"^(start|first|from|begin)(_|$)",
    "last": r"^(end|last|to|stop)(_|$)",
}
_ROLES = (
    ("replace", ("path", "old", "new"), (), r"replac|edit|substitut|patch|swap|chang|modif"),
    ("shell", ("command",), (), r"shell|bash|command|terminal|execut|run"),
    ("view", ("path",), ("first", "last"), r"view|read|show|open|display"),
)
_SHOWN = re.compile(r"grep -n '' (\S+|'[^']+')(?: \| sed -n '(\d+),(\d+|\$)p')?(?=;|$)")
_HEAD = re.compile(r"\s*(\d+|\?) (?:\./)?([\w@+./-]+\.\w+)$")
_ROW = re.compile(r"(\d{1,6}):(.*)$")
_VIEWED = re.compile(r"^\s*(\d{1,6})(?:\t|: ?|\| ?|→)", re.M)
_PATH = re.compile(r"^(?:\./)?((?:[\w.@+-]+/){0,8}[\w.@+-]+\.\w{1,5})$", re.M)
_REFUSED = re.compile(
    r"\s*(?:error|failed|invalid|traceback|not found|cannot|could not|unknown)\b|.{0,80}\bno such file", re.I
)
_EDITED = re.compile(r"\Apython3 - <<'END_OF_EDIT'\n.*^edit = json\.loads\(([^\n]*)\)$", re.M | re.S)
_EDIT = """python3 - <<'END_OF_EDIT'
import json, sys
edit = json.loads({text!r})
text = open(edit["path"], encoding="utf-8", newline="").read()
if text.count(edit["old"]) != 1:
    sys.exit("error: the text occurs %d times" % text.count(edit["old"]))
open(edit["path"], "w", encoding="utf-8", newline="").write(text.replace(edit["old"], edit["new"]))
print("edited " + edit["path"])
END_OF_EDIT"""
_NOT = re.compile(r"\b(?:not|never|avoid|without|rather than|instead of)\b|n't\b", re.I)
_SENTENCE = re.compile(r"(?<=[.;!?:])\s+|\n\s*\n|\n\s*[-*]\s*")


class Habit(StrEnum):
    """A way of working that a system text can ask for, as a pattern of its words."""

    SEVERAL = r"\b(?:several|multiple|more than one|parallel|all independent)\b.{0,30}\b(?:tools?|calls?)\b"
    TESTS_FIRST = (
        r"\brun\b.{0,30}\btests?\b.{0,20}\b(?:before|first)\b|\bfirst\b.{0,40}\brun\b.{0,20}\btests?"
    )
    REPRODUCE = r"\breproduc"
    TARGETED = r"\brun\b.{0,12}\b(?:only|just)\b.{0,25}\btests?\b"
    NO_TESTS = r"\brun\b.{0,25}\btests?\b"


@lru_cache(maxsize=64)
def asks(system: str, habit: Habit) -> bool:
    """Return whether a system text asks for a habit; a negation before the words turns them around."""
    for sentence in _SENTENCE.split(system[:40_000]):
        text = " ".join(sentence.split())[:400]
        match = re.search(habit, text, re.I)
        if match and bool(_NOT.search(text[: match.start()])) == (habit is Habit.NO_TESTS):
            return True
    return False


class Edit(NamedTuple):
    """A replacement of ``old``, which occurs exactly once in the file."""

    path: str
    old: str
    new: str


Move = str | Edit
"""A shell command, or an edit."""


class Window(NamedTuple):
    """Lines of a file to show; ``last`` 0 is its end."""

    path: str
    first: int = 1
    last: int = 0


def show(*windows: Window) -> str:
    """Return the command that shows parts of files: each file's length and name, then numbered lines."""
    parts = []
    for path, first, last in windows:
        cut = f" | sed -n '{first},{last or '$'}p'" if first > 1 or last else ""
        parts.append(f"wc -l {quote(path)}; grep -n '' {quote(path)}{cut}")
    return "; ".join([*parts, "echo '== end'"])


class Change(NamedTuple):
    """A difference of a file from its first state: from line ``first`` on, ``old`` lines became ``new`` lines."""

    first: int
    old: tuple[str, ...]
    new: tuple[str, ...]


class FileView:
    """The known lines of a file by number: as they are now, and (``base``) before any edit."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.lines: dict[int, str] = {}
        self.base: dict[int, str] = {}
        self.total: int | None = None

    @property
    def text(self) -> str:
        """All known lines."""
        return "".join(self.lines[number] + "\n" for number in sorted(self.lines))

    @property
    def gap(self) -> Window | None:
        """The first lines that are not known; ``None`` if all are."""
        first = next(number for number in range(1, len(self.lines) + 2) if number not in self.lines)
        after = min((number for number in self.lines if number > first), default=1) - 1
        return None if self.total is not None and first > self.total else Window(self.path, first, after)

    @property
    def change(self) -> Change | None:
        """How the file differs from its first state."""
        base, now = self.base, self.lines
        shift = len(now) - len(base)
        first = next((n for n in sorted(base) if now.get(n) != base[n]), max(base, default=0) + 1)
        last = next((n for n in sorted(base, reverse=True) if now.get(n + shift) != base[n]), 0)
        last = max(last, first - 1, first - 1 - shift)
        old = tuple(base[n] for n in range(first, last + 1) if n in base)
        new = tuple(now[n] for n in range(first, last + shift + 1) if n in now)
        return Change(first, old, new) if old != new else None

    def see(self, shown: Mapping[int, str], total: int | None) -> None:
        """Take in lines of the present file; if they contradict what is known, that is forgotten."""
        if any(self.lines.get(number, text) != text for number, text in shown.items()):
            self.forget()
        change = self.change or Change(1 << 30, (), ())
        for number, text in shown.items():
            self.lines[number] = text
            if number < change.first:
                self.base[number] = text
            elif number >= change.first + len(change.new):
                self.base[number - len(change.new) + len(change.old)] = text
        if total is not None:
            self.total = max([total, *self.lines])

    def forget(self) -> None:
        """Discard everything known of the file."""
        self.lines, self.base, self.total = {}, {}, None

    def replace(self, old: str, new: str) -> None:
        """Make an edit that succeeded; forget the file if the old text is not known or not alone."""
        text, numbers = self.text, sorted(self.lines)
        if not old or text.count(old) != 1:
            self.forget()
            return
        start = text[: text.index(old)].count("\n")
        touched = numbers[start : start + old.count("\n") + (not old.endswith("\n"))]
        block = "".join(self.lines[n] + "\n" for n in touched).replace(old, new, 1)
        rows = block.removesuffix("\n").split("\n") if block else []
        first, last, shift = touched[0], touched[-1], len(rows) - len(touched)
        moved = {n + (shift if n > last else 0): t for n, t in self.lines.items() if not first <= n <= last}
        self.lines = moved | {first + index: row for index, row in enumerate(rows)}
        self.total = None if self.total is None else self.total + shift


class Step(NamedTuple):
    """One call of the model that the scaffold kept: a move, if it can be understood, and its result, if it is shown."""

    move: Move | None
    result: str | None
    done: bool
    """Whether it is an edit that succeeded."""
    state: frozenset[tuple[str, Change]]
    """After such an edit, what is changed in all files."""


@dataclass
class Talk:
    """Everything that one request shows."""

    system: str
    problem: str
    tools: Mapping[str, tuple[str, Mapping[str, str]]]
    """Role (``shell``, ``replace``, ``view``) → the tool's name, and its parameters by slot."""
    steps: list[Step] = field(default_factory=list)
    files: dict[str, FileView] = field(default_factory=dict)

    @cached_property
    def listing(self) -> tuple[str, ...]:
        """Paths of files in the first message or in the result of a ``find``."""
        paths = _PATH.findall(self.problem[:60_000])
        texts = [s.result or "" for s in self.steps if isinstance(s.move, str) and s.move.startswith("find ")]
        return tuple(dict.fromkeys([*(paths if len(paths) > 2 else ()), *_PATH.findall("\n".join(texts))]))

    @property
    def own_source(self) -> bool:
        """Whether the repository is an agent's own source."""
        asked = re.search(r"\b(?:source|code)\b.{0,40}\bagent\b.{0,60}\b(?:your|own)\b", self.system, re.S)
        return bool(asked) or "Improve this coding agent" in self.problem or "agent.toml" in self.listing

    def view(self, path: str) -> FileView:
        """Return the known lines of a file."""
        return self.files.get(path) or FileView(path)

    def times(self, move: Move) -> int:
        """Return how often a move was made."""
        return sum(step.move == move for step in self.steps)

    def call(self, move: Move, identifier: str) -> ToolCall | None:
        """Return the call that makes a move; ``None`` if the tools cannot."""
        if isinstance(move, Edit) and "replace" not in self.tools:
            move = _EDIT.format(text=json.dumps(move._asdict()))
        if isinstance(move, Edit):
            return self._filled("replace", identifier, path=move.path, old=move.old, new=move.new)
        if "shell" in self.tools:
            return self._filled("shell", identifier, command=move)
        shown = _SHOWN.search(move)
        if shown is None or "view" not in self.tools:
            return None
        window = {"first": int(shown[2]), "last": int(shown[3])} if (shown[3] or "$") != "$" else {}
        return self._filled("view", identifier, path=shown[1].strip("'"), **window)

    def _filled(self, role: str, identifier: str, **values: str | int) -> ToolCall:
        name, slots = self.tools[role]
        given = {slots[slot]: value for slot, value in values.items() if slot in slots}
        return ToolCall(identifier, name, json.dumps(given))

    def understand(self, call: ToolCall) -> Move | None:
        """Return the move that a call makes; ``None`` for a call that is not understood."""
        role = next((role for role, (name, _) in self.tools.items() if name == call.name), "")
        try:
            given = json.loads(call.arguments)
            values = {s: given[name] for s, name in self.tools[role][1].items() if name in given}
        except (ValueError, RecursionError, LookupError, TypeError):
            return None
        if role == "replace":
            return Edit(*(str(values.get(slot, "")) for slot in ("path", "old", "new")))
        if role == "view":
            first, last = (values.get(slot) for slot in ("first", "last"))
            window = (first, last) if isinstance(first, int) and isinstance(last, int) else (1, 0)
            return show(Window(str(values.get("path", "")), *window))
        command = str(values.get("command", ""))
        edited = _EDITED.match(command)
        return Edit(**json.loads(parse_literal(edited[1]))) if edited else command


def recognise(tools: Sequence[Tool]) -> dict[str, tuple[str, dict[str, str]]]:
    """Return the first tool of each role with its parameters by slot; a tool with other needs is left alone."""
    box: dict[str, tuple[str, dict[str, str]]] = {}
    for tool in tools:
        properties, required = (tool.parameters.get(key) for key in ("properties", "required"))
        names = [str(name) for name in properties] if isinstance(properties, Mapping) else []
        what = f"{tool.name.replace('_', ' ')} {tool.description[:500]}".lower()
        for role, needed, optional, verb in _ROLES:
            slots: dict[str, str] = {}
            for slot in (*needed, *optional):
                free = [n for n in names if n not in slots.values() and re.search(_NAMES[slot], n.lower())]
                if free:
                    slots[slot] = free[0]
            rest = set(required if isinstance(required, list) else ()) - set(slots.values())
            if re.search(verb, what) and not rest and all(slot in slots for slot in needed):
                box.setdefault(role, (tool.name, slots))
                break
    return box


def fold(request: Request) -> Talk:
    """Return everything that a request shows."""
    turns = [message for message in request.messages if message.role is not Role.SYSTEM]
    count = next((i for i, message in enumerate(turns) if message.role is not Role.USER), len(turns))
    talk = Talk(
        "\n".join(message.text for message in request.messages if message.role is Role.SYSTEM),
        "\n".join(message.text for message in turns[:count]),
        recognise(request.tools),
    )
    answers = {message.call_id: message.text for message in reversed(turns) if message.role is Role.TOOL}
    for message in turns:
        for call in message.calls:
            _take(talk, talk.understand(call), answers.get(call.id))
    return talk


def _take(talk: Talk, move: Move | None, result: str | None) -> None:
    """Add a step, and what it shows or changes in files."""
    done = isinstance(move, Edit) and result is not None and not _REFUSED.match(result[:400])
    if isinstance(move, Edit) and done:
        talk.files.setdefault(move.path, FileView(move.path)).replace(move.old, move.new)
    elif isinstance(move, str) and result and "grep -n ''" in move:
        paths = [shown[1].strip("'") for shown in _SHOWN.finditer(move)]
        if "shell" not in talk.tools:
            rows = _VIEWED.sub(r"\1:", result.rstrip("\n"))
            last = _ROW.match(rows.rpartition("\n")[2])
            total = last[1] if last and "sed -n" not in move else "?"
            result = f"{total} {paths[0]}\n{rows}" + "\n== end" * bool(last)
        for path, shown, total in read_shown(result, paths[0] if len(paths) == 1 else ""):
            talk.files.setdefault(path, FileView(path)).see(shown, total)
    state = ((path, view.change) for path, view in talk.files.items() if done and view.change)
    talk.steps.append(Step(move, result, done, frozenset(state)))


def read_shown(text: str, only: str) -> Iterator[tuple[str, dict[int, str], int | None]]:
    """Yield path, lines and length of the files in an output of ``show`` (``only`` one, or several), cut anywhere.

    A line is believed if its neighbours are shown, too.
    """
    rows = text.rstrip("\n").split("\n")
    heads, numbered = [_HEAD.match(row) for row in rows], [_ROW.match(row) for row in rows]
    numbers = [int(match[1]) if match else None for match in numbered]
    path, total, lines = only, None, dict[int, str]()
    for index, number in enumerate(numbers):
        head, match = heads[index], numbered[index]
        if head or match is None or number is None:
            if lines or total is not None:
                yield path, lines, total
            path, lines = (head[2] if head else only), {}
            total = int(head[1]) if head and head[1] != "?" else None
            continue
        led = index > 0 and (bool(heads[index - 1]) or numbers[index - 1] == number - 1)
        followed = index + 1 < len(rows) and (bool(heads[index + 1]) or numbers[index + 1] == number + 1)
        if path and led and (followed or rows[index + 1 : index + 2] == ["== end"]):
            lines[number] = match[2]
    if path and (lines or total is not None):
        yield path, lines, total
