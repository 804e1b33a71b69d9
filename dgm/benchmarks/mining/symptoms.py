"""The failing assertion in a test's output: the code that was run, and the error in which it ended.

Reads pytest's long and short tracebacks, and what ``node:test``, jest, vitest and Go print. Stacks and places in files
are taken out; the rest is as it was printed.
"""

import ast
import re
import textwrap
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from dgm.benchmarks.mining.diff_words import added_blocks, new_rows
from dgm.benchmarks.plain_logs import plain_text
from dgm.syntax import parse

CODE_LINES, ERROR_LINES, LINE_CHARS = 40, 20, 300
"""Maximum lines of code and of an error, and characters of a line, that are kept."""
MOST_TEST_LINES = 60
"""Maximum lines of a test whose code is told whole."""
_TEXT_LINES = 100
"""Maximum lines of a text in a test that is not indented."""
HELPER_LINES = 12
"""Maximum lines of a function of the tests that is shown beside what failed."""
_NAME = re.compile(r"[^\W\d]\w*")
_HELPER = re.compile(r"(?:async def|def|class) (?!test|Test)(\w+)\b")
_CONSTANT = re.compile(r"([^\W\d]\w*) = ")
_CASES = re.compile(r"@(?:pytest\.)?mark\.parametrize\(")
_FRAME = re.compile(r"^(?:_ )+_*\s*$|^\S+:\d+: (?:[A-Z]\w*|in \w+.*)?\s*$", re.M)
_ENDS = re.compile(
    r"(?<=\n)\S+:\d+: [A-Za-z_]\w*[ \t]*$(?!\s*(?:During handling of|The above exception))", re.M
)
"""The place of the error, by which pytest ends the output of one test."""
_DEFINITION = re.compile(r"^\s*(?:async\s+)?def \w+\(")
_ENDS_DEFINITION = re.compile(r"\)\s*(?:->.*)?:\s*(?:#.*)?$")
_CHAINED = re.compile(
    r"^(?:During handling of the above exception|The above exception was the direct cause).*$", re.M
)
_SHORT = re.compile(r"^\S+:\d+: in .*\n((?:    .*\n)+)", re.M)
_COMMENT = re.compile(r"\s*(?:#(?!\[)|//)")
_KEY_BESIDE_CODE = re.compile(
    r"""^([^'"#]*[^'"#\s])\s+# .*(?:https?://|#\d|\b(?:issue|bug|pr|gh)\b\W*\d).*$""", re.I
)
"""A row of code with a comment beside it that names an issue."""
_SHORT_TEST = re.compile(r"^(?!/)\S+:\d+: in (test\w*)\s*$", re.M)
_LONG_TEST = re.compile(r"^\s*(?:async\s+)?def (test\w*)\(", re.M)
_NEXT_SHORT = re.compile(r"^E.*\n(?=\n+(?:\S+:\d+: in |ImportError while ))", re.M)
"""The end of a failure in the short form, where another one follows."""
_LACKS = re.compile(
    r"^(?:ImportError|ModuleNotFoundError|NameError)\b|has no attribute|unexpected keyword argument", re.M
)
_LACKS_ALL = re.compile(
    r"^(?:ImportError|ModuleNotFoundError|NameError)\b|(?:module|type object) '.*' has no attribute", re.M
)
_VALUES = re.compile(r"^(?!self\b)[a-z_]\w* = (?!.*\bat 0x).*", re.M)
_STACK = re.compile(r"\s+at (?:.*[(/:].*|async .*)$|\s*(?:❯|File \"|node:internal)|\s*>?\s*\d+ \|")
_CARETS = re.compile(r"\s*[\^~]+\s*$")
_HINT = re.compile(
    r"\s*(?:Use -v to get|Omitting \d+ identical items"
    r"|\+\s+where <(?:function|class|bound method|built-in|module)\b[^>]*> = )"
)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_GO = re.compile(r"^\s+\S+_test\.go:\d+: (.*)")
_ERROR = re.compile(r"\b(?:Error|Exception|expected|received|actual|panic|got|want|failed)\b|[!=]==?", re.I)
_TEST_HEAD = re.compile(
    r"\s*(?:@|(?:async )?def |class |func |fn |#\[|(?:describe|it|test|suite)(?:\.\w+)*\(|import\b|from\b"
    r"|const .*require\(|use |package )"
)
_CLOSES = re.compile(r"\s*[)}\]]+;?\s*$")
_ASSERTS = re.compile(
    r"\b(?:assert\w*|expect|equal|deepEqual|strictEqual|throws|raises|Errorf?|Fatalf?|require\.)\b"
)


@dataclass(frozen=True, slots=True)
class Symptom:
    """Input and result of a failing test."""

    code: str
    """The test's own code up to the failure, without the name of the test."""
    values: tuple[str, ...]
    """``name = value`` of the test's parameters."""
    error: str
    """The error, without a stack."""


def only_code(found: Collection[str]) -> str:
    """Return the code of a failing test, of all that its name was found for.

    Raises:
        ValueError: it was not found, is not the only one, or has more than ``MOST_TEST_LINES`` lines.
    """
    if not found:
        raise ValueError("no test file shows the code of the failing test")
    if len({*found}) > 1:
        raise ValueError("several test files have a test of this name")
    code = next(iter(found))
    if len(code.split("\n")) > MOST_TEST_LINES:
        raise ValueError(f"the failing test has more than {MOST_TEST_LINES} lines")
    return code


def find_symptom(failure: str, test_diff: str, test: str = "", files: Sequence[str] = ()) -> Symptom:
    """Return the first failing assertion of a test's output.

    Args:
        failure: what the test runner printed of it.
        test_diff: the changes of the test files, which have the code where the output does not show it.
        test: the id of the test, for output that does not name it.
        files: the texts of the test files as a whole, where they are known; they take the place of the changes.

    Raises:
        ValueError: the output holds no error, or neither of them shows all of the code.
    """
    text = plain_text(failure).replace("\r\n", "\n")
    if end := _ENDS.search(text):
        text = text[: end.start()]
    if end := _NEXT_SHORT.search(text):
        text = text[: end.end()]
    text = _CHAINED.split(text)[-1]
    code, values = _code_of_pytest(text)
    error = [line[1:] for line in text.split("\n") if re.match(r"E(?:   |$)", line)] or list(
        _plain_error(text)
    )
    error = textwrap.dedent("\n".join(row for row in error if not _HINT.match(row))).split("\n")
    error = [_ADDRESS.sub("", row) for row in error]
    if code:
        named = _SHORT_TEST.search(text) or _LONG_TEST.search(text)
        name = named[1] if named else test.partition("[")[0].rpartition("::")[2]
        parts = [file.split("\n") for file in files] or list(new_rows(test_diff))
        body = _find_body(name, parts) if name else []
        long = bool(_LONG_TEST.search(text))
        line = 0 if long or not named else int(text[: named.end()].rpartition("\n")[2].split(":")[1])
        place = _find_place(code[0], body, parts, line)
        code = _complete(_widen(code, body, "\n".join(error), None if long else place), [body, *parts])
        code = [*_find_helpers(code, parts), *_find_cases(name, parts), *code]
    # Comments of tests name issues and causes.
    rows = [row for row in code or _code_of_diff(test_diff) if not _COMMENT.match(row)]
    code = [_KEY_BESIDE_CODE.sub(r"\1", row) for row in rows]
    if not any(line.strip() for line in error):
        raise ValueError("the output of the tests holds no error that could be told")
    if not code:
        raise ValueError("neither the output of the tests nor their changes show what was run")
    return Symptom("\n".join(_cut(code, CODE_LINES)), tuple(values), "\n".join(_cut(error, ERROR_LINES)))


def _code_of_pytest(text: str) -> tuple[list[str], list[str]]:
    """Return the code of the test up to the line that failed, and the values of its parameters."""
    first = _FRAME.split(text, 1)[0]
    rows = first.split("\n")
    failed = [number for number, row in enumerate(rows) if row.startswith(">")]
    starts = [number for number, row in enumerate(rows) if _DEFINITION.match(row)]
    if not failed or not starts:
        found = _SHORT.search(text)
        rows = [row for row in (found[1] if found else "").split("\n") if not _CARETS.match(row)]
        return textwrap.dedent("\n".join(rows)).strip("\n").split("\n") if found else [], []
    begin = starts[0]
    while begin < failed[-1] and not _ENDS_DEFINITION.search(rows[begin]):
        begin += 1
    last = failed[-1] + 1
    while last < len(rows) and rows[last].strip() and not rows[last].startswith("E"):
        last += 1
    body = [row.removeprefix(">").rjust(len(row)) for row in rows[begin + 1 : last] if not _CARETS.match(row)]
    values = _VALUES.findall("\n".join(rows[: starts[0]]))
    return _drop_text(textwrap.dedent("\n".join(body)).strip("\n").split("\n")), values


def _find_place(first: str, body: list[str], parts: Sequence[list[str]], line: int) -> int | None:
    """Return the index in a test's body of the first line that the output shows; None if it is not known.

    Args:
        first: that line.
        body: of the test; empty if unknown.
        parts: of the tests.
        line: its number in the file, from 1; 0 if unknown. It matters where the test has several such lines.
    """
    first = first.strip()
    places = [number for number, row in enumerate(body) if row.strip() == first]
    if len(places) < 2:
        return places[0] if places else None
    for rows in parts:
        if 0 < line <= len(rows) and rows[line - 1].strip() == first:
            begin = line - 1
            while begin and not _DEFINITION.match(rows[begin]):
                begin -= 1
            before = sum(row.strip() == first for row in rows[begin : line - 1])
            return places[before] if before < len(places) else None
    return None


def _widen(code: list[str], body: list[str], error: str, place: int | None) -> list[str]:
    """Return the code of the test from its beginning, or all of it where a new name is missing in the old code.

    Args:
        code: the part that the output shows.
        body: all of the test; empty if unknown.
        error: the error.
        place: index in it of the code's first line; None if it is unknown, or the code begins with the test.

    Raises:
        ValueError: a new name is missing, and the changed tests do not show what it should do.
    """
    if body and _LACKS.search(error):
        return body
    if _LACKS_ALL.search(error):
        raise ValueError(
            "the output of the tests tells only that a name is missing, not what is wanted of it"
        )
    if place is None:
        return code
    end = place + len(code)
    while end < len(body) and not (_is_whole(body[:end]) and _margin(body[end]) <= _margin(body[place])):
        end += 1
    if _is_whole(body[:end]):
        return "\n".join(body[:end]).rstrip().split("\n")
    shift = " " * _margin(body[place])
    return [*body[:place], *(shift + row for row in code)]


def _find_cases(test: str, parts: Sequence[list[str]]) -> list[str]:
    """Return the decorators of a test that give its parameters their values; empty if there are none, or too many."""
    head = re.compile(rf"\s*(?:async\s+)?def {re.escape(test)}\(")
    for rows in parts:
        for number, row in enumerate(rows):
            if not test or not head.match(row):
                continue
            begin = number
            while begin and rows[begin - 1].strip() and not _ENDS_DEFINITION.search(rows[begin - 1]):
                begin -= 1
            cases = _outdent(rows[begin:number])
            is_told = any(_CASES.match(each) for each in cases) and len(cases) <= HELPER_LINES
            return cases if is_told and _is_whole([*cases, "def example(): ..."]) else []
    return []


def _find_body(test: str, parts: Sequence[list[str]]) -> list[str]:
    """Return the body of a test, without its docstring; empty if no part of the tests has it as a whole."""
    head = re.compile(rf"\s*(?:async\s+)?def {re.escape(test)}\(")
    for rows in parts:
        for number, row in enumerate(rows):
            if not head.match(row):
                continue
            begin = number
            while begin < len(rows) and not _ENDS_DEFINITION.search(rows[begin]):
                begin += 1
            end = _end_of_text(rows, number, _after_indented(rows, number, begin + 1))
            body = "\n".join(_outdent(rows[begin + 1 : end])).strip("\n").split("\n")
            return _drop_text(body) if _is_whole(body) else []
    return []


def _outdent(rows: list[str]) -> list[str]:
    """Return code without the margin of its first line; the lines of a text stay as they are."""
    margin = next((_margin(row) for row in rows if row.strip()), 0)
    kept = _find_text_rows(rows)
    return [
        row if number in kept or row[:margin].strip() else row[margin:] for number, row in enumerate(rows)
    ]


def _find_text_rows(rows: list[str]) -> set[int]:
    """Return the indexes of lines that continue a text of several lines; empty where the code cannot be parsed."""
    try:
        tree = parse("\n".join(["if True:", *rows]))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    texts = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    ]
    # One line was put in front, and lines are counted from 1.
    return {number - 2 for node in texts for number in range(node.lineno + 1, (node.end_lineno or 0) + 1)}


def _end_of_text(rows: list[str], begin: int, end: int) -> int:
    """Return the end of a function that seems to end within a text of several lines."""
    for later in range(end, min(len(rows), end + _TEXT_LINES)):
        if _is_whole(_outdent(rows[begin:later])):
            return _after_indented(rows, begin, later)
    return end


def _after_indented(rows: list[str], begin: int, end: int) -> int:
    while end < len(rows) and (not rows[end].strip() or _margin(rows[end]) > _margin(rows[begin])):
        end += 1
    return end


def _complete(code: list[str], parts: Sequence[list[str]]) -> list[str]:
    """Return code that ends within a statement with the rest of it, which stands in a part of the tests.

    Raises:
        ValueError: it does not stand there.
    """
    if _is_whole(code):
        return code
    for rows in parts:
        for number, row in enumerate(rows):
            if row.strip() == code[-1].strip():
                margin = _margin(row)
                whole = list(code)
                for more in rows[number + 1 : number + CODE_LINES]:
                    if more.strip() and _margin(more) <= margin and _is_whole(whole):
                        break
                    whole.append(" " * max(0, _margin(more) - margin + _margin(code[-1])) + more.strip())
                if _is_whole(whole):
                    return whole
    raise ValueError("the output of the tests shows only the beginning of what was run")


def _find_helpers(code: list[str], parts: Sequence[list[str]]) -> list[str]:
    """Return the functions, classes and constants of the tests that the code names, a blank line after each."""
    names = set(_NAME.findall("\n".join(code)))
    found: list[str] = []
    for rows in parts:
        for number, row in enumerate(rows):
            defined = _HELPER.match(row) or _CONSTANT.match(row)
            if not defined or defined[1] not in names:
                continue
            names.discard(defined[1])
            helper = _read_helper(rows, number)
            if helper:
                found += [*helper, ""]
    return found if len(found) <= CODE_LINES // 2 else []


def _read_helper(rows: list[str], number: int) -> list[str]:
    """Return the definition that begins in a line, its decorators included; empty if it is too long to be shown."""
    begin = number
    while begin and rows[begin - 1].startswith("@"):
        begin -= 1
    end = number + 1
    if _CONSTANT.match(rows[number]):
        while end < min(len(rows), begin + HELPER_LINES) and not _is_whole(rows[begin:end]):
            end += 1
    else:
        while end < len(rows) and (not rows[end].strip() or _margin(rows[end])):
            end += 1
    helper = "\n".join(rows[begin:end]).rstrip().split("\n")
    return helper if len(helper) <= HELPER_LINES and _is_whole(helper) else []


def _is_whole(code: list[str]) -> bool:
    try:
        parse("\n".join(code))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _margin(row: str) -> int:
    return len(row) - len(row.lstrip())


def _drop_text(rows: list[str]) -> list[str]:
    """Return the code of a function without its docstring."""
    found = re.match(r'\s*[rR]?("""|\'\'\'|")(?:(?!\1).)*\1[ \t]*\n', "\n".join(rows), re.DOTALL)
    return "\n".join(rows)[found.end() :].split("\n") if found else rows


def _plain_error(text: str) -> Iterator[str]:
    """Yield the lines of an error that is not pytest's, from the first that tells one, without its stack."""
    told = [found[1] for row in text.split("\n") if (found := _GO.match(row))]
    if told:
        yield from told
        return
    # node:test prints its own error, and the assertion as the cause of it.
    _, cause, rest = text.rpartition("  cause: ")
    rows = [row.removeprefix(cause[:2]) for row in rest.split("\n")]
    begin = next((number for number, row in enumerate(rows) if _ERROR.search(row)), len(rows))
    for number, row in enumerate(rows[begin:]):
        if number and _STACK.match(row):
            return
        yield row


def _code_of_diff(test_diff: str) -> list[str]:
    """Return the first added lines of a test that assert something, without the lines that begin and end it."""
    for block in added_blocks(test_diff):
        heads = {_margin(row) for row in block if _TEST_HEAD.match(row)}
        rows = [
            row
            for row in block
            if not _TEST_HEAD.match(row) and not (_CLOSES.match(row) and _margin(row) in heads)
        ]
        if any(_ASSERTS.search(row) for row in rows):
            return textwrap.dedent("\n".join(rows)).strip("\n").split("\n")
    return []


def _cut(rows: Sequence[str], most: int) -> Iterator[str]:
    """Yield at most so many lines, without blank ones at both ends."""
    text = "\n".join(rows).strip("\n").split("\n")
    for row in text[:most]:
        yield row.rstrip() if len(row) <= LINE_CHARS else row[:LINE_CHARS] + "…"
    if len(text) > most:
        yield "…"
