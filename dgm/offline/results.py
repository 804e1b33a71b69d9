"""Parsing of tool output: numbered lines of files, listings, and the outcome of test runs.

A scaffold may have cut the output anywhere, so a line beside a cut is never believed.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

_NUMBERED = re.compile(r"^\s{0,8}(\d{1,6})(?:[:|│\t→]) ?(?=)(.*)$")
_OURS = re.compile(r"^(\d{1,6}):(.*)$")
_LENGTH = re.compile(r"^\s*(\d{1,7}) \S")
_PATH = re.compile(
    r"^(?:\./)?((?:[\w.@+-]+/){0,8}[\w.@+-]+\.(?:py|toml|md|txt|cfg|json|ini|yaml|yml))$", re.M
)
_RAN = re.compile(r"^Ran \d+ tests? in .*$", re.M)
_PASSED = re.compile(r"^(?:OK(?: \(.*\))?|=+ .*\b\d+ passed.* =*|\d+ passed.*)\s*$", re.M)
_FAILED = re.compile(r"^(?:FAILED \(.*\)|=+ .*\b\d+ (?:failed|error).*|\d+ failed.*)\s*$", re.M)
_FAILING = re.compile(r"^(?:FAIL|ERROR): (\w+) \(([\w.]+)\)", re.M)
_FRAME = re.compile(r'^ {2}File "([^"\n]{1,300})", line (\d+), in ([\w<>.]+)\n(?: {4}(.*)\n)?', re.M)
_RAISED = re.compile(
    r"^((?:\w+\.){0,6}\w{0,60}(?:Error|Exception|Interrupt|Iteration|Exit)"
    r"|(?:[a-z_]\w*\.){1,6}[A-Z]\w{1,60})(?:: (.*))?$",
    re.M,
)
_REFUSED = re.compile(
    r"\s*(?:error|failed|failure|invalid|traceback|no match|not found|exception|cannot|could not|unknown)\b"
    r"|.{0,80}\b(?:occurs \d+ times|not found|no such file|does not (?:occur|exist|match))",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a traceback: its place, and the source line if the output showed it."""

    path: str
    line: int
    function: str
    source: str


@dataclass(frozen=True, slots=True)
class TestRun:
    """The visible part of a test run; ``passed`` is ``None`` if no verdict was shown."""

    __test__ = False

    passed: bool | None
    failing: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    """Frames of tracebacks, in the order shown."""
    messages: tuple[str, ...] = ()
    """Last lines of tracebacks: ``AssertionError: 3 != 4``."""


def parse_view(text: str, first: int, last: int) -> tuple[dict[int, str], int | None]:
    """Return the lines that a view by the model's own command shows, and the file's length if shown.

    Args:
        text: the output of ``wc -l F; grep -n '' F | sed -n 'first,lastp'``, possibly cut.
        first: the first line asked for.
        last: the last one; 0 for the end of the file.
    """
    rows = text.split("\n")
    head = _LENGTH.match(rows[0]) if rows else None
    total = int(head[1]) if head and not _OURS.match(rows[0]) else None
    kept: dict[int, str] = {}
    previous: int | None = None
    for index, row in enumerate(rows):
        found = _OURS.match(row)
        number = int(found[1]) if found else None
        if found is None or number is None:
            if previous is not None and any(part.strip() for part in rows[index : index + 2]):
                kept.pop(previous, None)
            previous = None
            continue
        if previous is None:
            if number == first or (index and total is not None and index == 1 and number == first):
                kept[number] = found[2]
        elif number == previous + 1:
            kept[number] = found[2]
        else:
            kept.pop(previous, None)
            number = None
        previous = number
    end = min(last or 10**9, total if total is not None else 10**9)
    if previous is not None and previous < end:
        kept.pop(previous, None)
    return kept, total


def parse_viewer(text: str, first: int) -> tuple[dict[int, str], int | None]:
    """Return the lines that a scaffold's viewing tool shows, and the file's length if it is known.

    The tool may number lines in one of the usual ways, or print them plain.

    Args:
        text: the tool's output, possibly cut.
        first: the first line asked for.
    """
    rows = text.split("\n")
    found = [_NUMBERED.match(row) for row in rows]
    hits = [match for match in found if match]
    if len(hits) * 2 > len([row for row in rows if row.strip()]):
        shown = {int(match[1]): match[2] for match in hits}
        whole = len(hits) >= len([row for row in rows if row.strip()])
        if not whole and shown:
            shown.pop(max(shown))
        return shown, (max(shown) if whole and shown and first == 1 else None)
    cut = any("truncat" in row or "omitted" in row for row in rows[-4:])
    if rows and not rows[-1]:
        rows.pop()
    if cut:
        rows = rows[:-3]
    return {first + index: row for index, row in enumerate(rows)}, (None if cut else first + len(rows) - 1)


def parse_paths(text: str) -> tuple[str, ...]:
    """Return the paths of files that stand alone on a line."""
    return tuple(dict.fromkeys(match[1] for match in _PATH.finditer(text[:60_000])))


@lru_cache(maxsize=256)
def test_run(text: str) -> TestRun | None:
    """Return the visible part of a test run, or ``None`` if nothing looks like one."""
    tail = list(_RAN.finditer(text))
    verdict: bool | None = None
    ended = _PASSED.search(text, tail[-1].end()) if tail else _PASSED.search(text)
    if _FAILED.search(text):
        verdict = False
    elif ended:
        verdict = True
    failing = tuple(dict.fromkeys(_test_id(match[1], match[2]) for match in _FAILING.finditer(text)))
    if verdict is None and not failing and not tail:
        return None
    if failing:
        verdict = False
    return TestRun(verdict, failing, parse_frames(text), parse_error_lines(text))


def parse_frames(text: str) -> tuple[Frame, ...]:
    """Return all traceback frames in a text."""
    return tuple(Frame(m[1], int(m[2]), m[3], (m[4] or "").strip()) for m in _FRAME.finditer(text))


def parse_error_lines(text: str) -> tuple[str, ...]:
    """Return the last lines of tracebacks in a text."""
    return tuple(dict.fromkeys(m[0] for m in _RAISED.finditer(text)))


def is_refusal(text: str) -> bool:
    """Return whether an editing tool reports that it did nothing."""
    return bool(_REFUSED.match(text[:400]))


def _test_id(name: str, where: str) -> str:
    return where if where.endswith("." + name) else f"{where}.{name}"
