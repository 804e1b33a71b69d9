"""The failing assertion of a test in Rust: the test's own code with what it uses of its file, and the panic."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from dgm.benchmarks.hidden_parts import closing_brace, mask
from dgm.benchmarks.mining.symptoms import ERROR_LINES, HELPER_LINES, LINE_CHARS, Symptom
from dgm.benchmarks.plain_logs import plain_text

MOST_LINES = 60
"""Maximum lines of the code of a test that is told."""
NO_PANIC = "did not panic"
PANICKED = "panicked: "
_PANIC = re.compile(r"^thread '.*' (?:\(\d+\) )?panicked at (?:'(.*)', \S+:\d+:\d+|\S+:\d+:\d+:)$", re.M)
_NOTE = re.compile(r"^(?:note: |stack backtrace:|\s+\d+: |\s+at )")
_ITEM = re.compile(
    r"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?(?:(?:unsafe|async|const)\s+)*(?:fn|struct|enum|const|static|type|macro_rules!)"
    r"\s+(\w+)",
    re.M,
)
_ATTRIBUTE = re.compile(r"\s*#\[")
_COMMENT = re.compile(r"\s*//")


def find_rust_symptom(failure: str, test: str, files: Sequence[str]) -> Symptom:
    """Return what a failing test runs, and how it ends.

    Args:
        failure: what the test printed.
        test: its id: the file, and the path of the function.
        files: the texts of the test files, or of modules of tests.

    Raises:
        ValueError: no file, or more than one, has the test, or its code is too long, or there is no error.
    """
    name = test.rpartition("::")[2]
    error = _read_error(plain_text(failure).replace("\r\n", "\n"))
    if not error.strip():
        raise ValueError("the output of the tests holds no error that could be told")
    found = [(text, place) for text in files for item, place in _find_items(text) if item == name]
    if not found:
        raise ValueError("no test file shows the code of the failing test")
    if len({text[start:end] for text, (start, end) in found}) > 1:
        raise ValueError("several test files have a test of this name")
    code = _read_code(*found[0])
    if len(code) > MOST_LINES:
        raise ValueError(f"the failing test has more than {MOST_LINES} lines")
    rows = [row[:LINE_CHARS] for row in error.strip("\n").split("\n")]
    return Symptom("\n".join(code), (), "\n".join(rows[:ERROR_LINES]))


def _find_items(text: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the functions, constants and types of a file: name, and offsets without attributes."""
    code = mask(text)
    for item in _ITEM.finditer(code):
        ends = re.compile(r"[{;]").search(code, item.end())
        end = 0
        if ends:
            end = ends.end() if ends[0] == ";" else closing_brace(code, ends.start())
        if end:
            yield item[1], (item.start(), end)


def _read_code(text: str, place: tuple[int, int]) -> list[str]:
    """Return the code of a test's function, after the items of its file that it uses."""
    start = text.index("{", place[0]) + 1
    own = textwrap.dedent(text[start : place[1] - 1].strip("\n")).rstrip().split("\n")
    names = set(re.findall(r"\w+", mask("\n".join(own))))
    items = [(name, at) for name, at in _find_items(text) if at != place and not _is_test(text, at[0])]
    wanted: list[tuple[int, int]] = []
    while more := [at for name, at in items if name in names and at not in wanted]:
        wanted += more
        names.update(word for start, end in more for word in re.findall(r"\w+", mask(text[start:end])))
    helpers: list[str] = []
    for start, end in sorted(wanted):
        rows = textwrap.dedent(text[start:end].strip("\n")).split("\n")
        helpers += [*rows, ""] if len(rows) <= HELPER_LINES else []
    return [row.rstrip() for row in [*helpers, *own] if not _COMMENT.match(row)]


def _is_test(text: str, at: int) -> bool:
    """Return whether the attributes before an item say that it is a test."""
    rows = text[:at].rstrip().split("\n")
    while rows and (_ATTRIBUTE.match(rows[-1]) or _COMMENT.match(rows[-1])):
        if re.search(r"#\[(?:\w+::)*test\b", rows.pop()):
            return True
    return False


def _read_error(text: str) -> str:
    """Return a test's panic without its place, or what it printed."""
    if NO_PANIC in text:
        return f"It {NO_PANIC}."
    panic = _PANIC.search(text)
    if not panic:
        return "\n".join(row for row in text.split("\n") if not _NOTE.match(row))
    rows = [panic[1]] if panic[1] else []
    for row in text[panic.end() :].lstrip("\n").split("\n"):
        if _NOTE.match(row):
            break
        rows.append(row)
    said = "\n".join(rows).strip("\n")
    return said if said.startswith("assertion ") else f"{PANICKED}{said}"
