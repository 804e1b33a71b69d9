"""The failing assertion of a test in Go: the code of its function with what it uses, and what it printed.

The code is cut out of the test file by its brackets, read with Pygments. Of a table of cases only those are kept that
the failing subtest names.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence

from dgm.benchmarks.mining.symptoms import ERROR_LINES, HELPER_LINES, LINE_CHARS, Symptom

MOST_LINES = 60
"""Maximum lines of the code of a test that is told."""
LEAST_CASES = 3
"""Minimum number of cases of a table that is cut down."""
_COMPILER = re.compile(r"^(?:\S*/)?(\w[\w.-]*_test\.go):(\d+):\d+: (.*)$")
_PLACE = re.compile(r"^\s*[\w.-]+\.go:\d+: ?")
_LEFT_OUT = re.compile(
    r"\s*(?:===|---) |\s*(?:Error Trace|Test):|\s*(?:/\S+|[\w.-]+)\.go:\d+(?: \+0x\w+)?$|exit status|FAIL\b|PASS$|\x16"
)
_STACK = re.compile(r"goroutine \d+|\s*\[signal |.*\[recovered\]$|testing\.tRunner")
_DECLARATION = re.compile(r"^(?:func(?: \([^)]*\))?|type|var|const) (\w+)")
_NAME = re.compile(r"[^\W\d]\w*")
_TEXT = re.compile(r'"((?:\\.|[^"\\\n])*)"|`([^`]*)`')
_OPEN, _CLOSE = "([{", ")]}"


def find_go_symptom(failure: str, test: str, files: Sequence[str]) -> Symptom:
    """Return what a failing test runs, and how it ends.

    Args:
        failure: what the test printed, or what the compiler said of its file.
        test: its id: the file, the function and its subtests.
        files: the texts of the test files.

    Raises:
        ValueError: no file has the test, or its code is too long, or there is no error.
    """
    path, _, name = test.partition("::")
    function, _, subtest = name.partition("/")
    for text in files:
        rows = text.split("\n")
        if place := _find_function(rows, function):
            error = _read_error(failure, path.rpartition("/")[2], place)
            if not error:
                raise ValueError("the output of the tests holds no error that could be told")
            code = _read_code(rows, place, files, subtest)
            if len(code) > MOST_LINES:
                raise ValueError(f"the failing test has more than {MOST_LINES} lines")
            return Symptom("\n".join(code), (), "\n".join(row[:LINE_CHARS] for row in error[:ERROR_LINES]))
    raise ValueError("no test file shows the code of the failing test")


def _find_function(rows: Sequence[str], name: str) -> tuple[int, int] | None:
    """Return the numbers, from 0, of the first line of a function and of the one behind its last."""
    for number, row in enumerate(rows):
        if re.match(rf"func {re.escape(name)}\(", row):
            end = next((n for n in range(number, len(rows)) if rows[n].startswith("}")), number)
            return number, end + 1
    return None


def _read_error(failure: str, file: str, place: tuple[int, int]) -> list[str]:
    """Return the lines of an error: of the compiler those on the function, else what the test printed."""
    rows = failure.replace("\r\n", "\n").split("\n")
    said = [found for row in rows if (found := _COMPILER.match(row))]
    if said:
        own = [found[3] for found in said if found[1] == file and place[0] < int(found[2]) <= place[1]]
        return list(dict.fromkeys(own or [found[3] for found in said]))
    kept: list[str] = []
    for row in rows:
        if _STACK.match(row) and kept:
            if row.endswith("[recovered]"):
                kept.append(row.removesuffix(" [recovered]"))
            break
        if not _LEFT_OUT.match(row):
            kept.append(_PLACE.sub("", row))
    return [row for row in textwrap.dedent("\n".join(kept).expandtabs(4)).split("\n") if row.strip()]


def _read_code(rows: Sequence[str], place: tuple[int, int], files: Sequence[str], subtest: str) -> list[str]:
    """Return the code of a test's function, after what it uses of the test files."""
    body = "\n".join(rows[place[0] + 1 : place[1] - 1])
    if place[1] - place[0] == 1:
        body = rows[place[0]].partition("{")[2].rpartition("}")[0]
    own = textwrap.dedent(_choose_cases(body, subtest)).strip("\n").split("\n")
    names = set(_NAME.findall("\n".join(own)))
    known = [chunk for text in files for chunk in _helpers(text.split("\n"))]
    used: list[list[str]] = []
    while more := [chunk for chunk in known if chunk not in used and _name_of(chunk) in names]:
        used += more
        names.update(name for chunk in more for name in _NAME.findall("\n".join(chunk)))
    before = [row for chunk in known if chunk in used for row in chunk]
    code = [*before, "", *own] if before and len(before) + len(own) < MOST_LINES else own
    return [row.rstrip() for row in code if not row.lstrip().startswith("//")]


def _helpers(rows: Sequence[str]) -> Iterator[list[str]]:
    """Yield the declarations of a file that are short, but for tests."""
    for number, row in enumerate(rows):
        found = _DECLARATION.match(row)
        if found and not row.startswith("func Test"):
            one_line = row.count("{") == row.count("}") and row.count("(") == row.count(")")
            if row.count("`") % 2:
                # A text over several lines.
                ends = (n for n in range(number + 1, len(rows)) if "`" in rows[n])
            else:
                ends = (n for n in range(number, len(rows)) if one_line or rows[n][:1] in ("}", ")"))
            chunk = list(rows[number : next(ends, len(rows)) + 1])
            if len(chunk) <= HELPER_LINES:
                yield chunk


def _name_of(chunk: Sequence[str]) -> str:
    found = _DECLARATION.match(chunk[0])
    return found[1] if found else ""


def _choose_cases(body: str, subtest: str) -> str:
    """Return the code of a test with only those cases of its table that the subtest names, if it names any."""
    wanted = {part for part in subtest.split("/") if part}
    for cases in _find_tables(body):
        named = [case for case in cases if wanted & _mangled(body[case[0] : case[1]])]
        if len(cases) >= LEAST_CASES and named:
            dropped = [case for case in cases if case not in named]
            for start, end in reversed(dropped):
                last = body.find("\n", end)
                body = body[:start] + body[last + 1 :] if last >= 0 else body
            return body
    return body


def _mangled(case: str) -> set[str]:
    """Return the texts of a case, as subtests are called by them."""
    return {re.sub(r"\s", "_", one or other) for one, other in _TEXT.findall(case)}


def _find_tables(body: str) -> list[list[tuple[int, int]]]:
    """Return the places of the cases of each composite literal, whose cases begin on lines of their own."""
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name("go", stripnl=False, ensurenl=False)
    open_ones: list[tuple[int, list[tuple[int, int]]]] = []
    found: list[list[tuple[int, int]]] = []
    for at, kind, value in lexer.get_tokens_unprocessed(body):
        if "String" in str(kind) or "Comment" in str(kind):
            continue
        for offset, sign in enumerate(value):
            if sign in _OPEN:
                open_ones.append((at + offset, []))
            elif sign in _CLOSE and open_ones:
                start, inner = open_ones.pop()
                found.append(inner)
                first = body.rfind("\n", 0, start) + 1
                line = body[first:start]
                alone = not line.strip() or line.strip().endswith(":")
                rest = body[at + offset + 1 :].partition("\n")[0].strip()
                if sign == "}" and open_ones and alone and rest in ("", ","):
                    open_ones[-1][1].append((first, at + offset + 1))
    return sorted((cases for cases in found if cases), key=len, reverse=True)
