"""The failing assertion of a test in JavaScript or TypeScript: the test's own code with what it uses, and the error.

The code is cut out of the test file by the brackets of its calls, read with Pygments. Titles of tests are left out.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dgm.benchmarks.mining.symptoms import ERROR_LINES, HELPER_LINES, LINE_CHARS, Symptom
from dgm.benchmarks.plain_logs import plain_text

MOST_LINES = 60
"""Maximum lines of the code of a test that is told."""
_CALLS = re.compile(r"(?:it|test|describe|suite|context|bench)\b")
_GROUPS = frozenset({"describe", "suite", "context"})
_OPEN, _CLOSE = "([{", ")]}"
_STACK = re.compile(r"\s*(?:at |❯|File \"|node:internal|Node\.js v)|\s+\d+\s*\||\s*\^+\s*$")
_FACTS = re.compile(r"\s*(?:generatedMessage|code|operator|diff): ")
_OF_SUBTESTS = re.compile(r"failureType: 'subtestsFailed'")
_PLACE = re.compile(r"/work/repo/(\S+?):(\d+)")
_JEST = re.compile(r"^Error: (?=expect\()")
_COMMENT = re.compile(r"\s*(?://|/\*.*\*/\s*$)")
_NAME = re.compile(r"[^\W\d][\w$]*")
_DEFINES = re.compile(
    r"(?:export\s+)?(?:default\s+)?(?:async\s+)?(?:function\*?|class|const|let|var|type|interface|enum)\s+(\w+|[{\[].*?[}\]])\s*",
    re.DOTALL,
)
_IMPORT = re.compile(
    r"import\b(.*?)\bfrom\b|(?:const|let|var)\s+(.*?)\s*=\s*(?:await\s+import|require)\(", re.DOTALL
)
_OF_TOOLS = re.compile(r"""['"](?:node:test|vitest|@jest/globals|(?:node:)?assert(?:/strict)?)['"]""")
_BEFORE = re.compile(r"(?:before|beforeEach|beforeAll)\(")


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of a test tool in a file."""

    name: str
    title: str
    start: int
    """Offset of its name."""
    body: tuple[int, int]
    """Offsets of the code of its function."""
    around: tuple[int, ...] = ()
    """Offsets of the blocks that it stands in, behind their braces."""
    cases: str = ""
    """The values for which it is run, as they are written; empty if it runs once."""


def find_script_symptom(failure: str, test: str, files: Sequence[str]) -> Symptom:
    """Return what a failing test runs, and how it ends.

    Args:
        failure: what the tool told of it.
        test: its id: the file and the titles.
        files: the texts of the test files.

    Raises:
        ValueError: no file has the test, or its code is too long, or there is no error.
    """
    if _OF_SUBTESTS.search(failure):
        raise ValueError("only tests within this one fail")
    path, _, titles = test.partition("::")
    error = list(_read_error(plain_text(failure).replace("\r\n", "\n")))
    if not error:
        raise ValueError("the output of the tests holds no error that could be told")
    lines = [int(line) for name, line in _PLACE.findall(failure) if name == path]
    for text in files:
        calls = _find_calls(text)
        if found := _choose(calls, titles.split(" > ")[-1], text, lines):
            if not {*found.around} <= {call.body[0] for call in calls}:
                raise ValueError(
                    "a function or a loop makes the test, with values that its output does not tell"
                )
            code = _read_code(text, calls, found)
            if len(code) > MOST_LINES:
                raise ValueError(f"the failing test has more than {MOST_LINES} lines")
            return Symptom("\n".join(code), (), "\n".join(row[:LINE_CHARS] for row in error[:ERROR_LINES]))
    raise ValueError("no test file shows the code of the failing test")


def _choose(calls: Sequence[_Call], title: str, text: str, lines: Sequence[int]) -> _Call | None:
    """Return the call of a test by its title, or the innermost one around a line of the error."""
    tests = [call for call in calls if call.name not in _GROUPS]
    titled = [call for call in tests if call.title == title]
    around = [
        call
        for line in lines
        for call in tests
        if text.count("\n", 0, call.start) < line <= text.count("\n", 0, call.body[1]) + 1
    ]
    both = [call for call in titled if call in around]
    if len(titled) > 1 and not both:
        return None
    made = [call for call in around[-1:] if not call.title or any(mark in call.title for mark in "%${")]
    return next(iter([*both, *titled, *made]), None)


def _find_calls(text: str) -> list[_Call]:
    """Return the calls of test tools with a function, in their order."""
    from pygments.lexers import get_lexer_by_name

    lexer = get_lexer_by_name("typescript", stripnl=False, ensurenl=False)
    tokens = [(at, str(kind), value) for at, kind, value in lexer.get_tokens_unprocessed(text)]
    code = [one for one in tokens if "Comment" not in one[1] and one[2].strip()]
    pairs = _match_brackets(code)
    found = []
    for number, (at, kind, value) in enumerate(code):
        is_method = number > 0 and code[number - 1][2] == "."
        if "String" in kind or not _CALLS.fullmatch(value) or (is_method and value != "test"):
            continue
        opened = _find_arguments(code, number + 1, pairs)
        if opened is None or (body := _find_body(code, opened, pairs)) is None:
            continue
        literal = code[opened + 1][2]
        first = next((n for n in range(number + 1, opened + 1) if code[n][2] == "("), opened)
        cases = text[code[first][0] + 1 : code[pairs[first]][0]].strip() if first != opened else ""
        title = _unquote(literal) if "String" in code[opened + 1][1] else ""
        around = tuple(
            code[one][0] + 1 for one, end in pairs.items() if one < number < end and code[one][2] == "{"
        )
        found.append(_Call(value, title, at, body, around, cases))
    return found


def _match_brackets(code: Sequence[tuple[int, str, str]]) -> dict[int, int]:
    """Return the index of the closing bracket for that of each opening one."""
    waiting: list[int] = []
    pairs: dict[int, int] = {}
    for number, (_, kind, value) in enumerate(code):
        if "String" in kind and value not in ("${", "}"):
            continue
        plain = value == "${" or all(one in f"{_OPEN}{_CLOSE};,.?" for one in value)
        for each in value if plain else "":
            if each in _OPEN:
                waiting.append(number)
            elif each in _CLOSE and waiting:
                pairs[waiting.pop()] = number
    return pairs


def _find_arguments(code: Sequence[tuple[int, str, str]], number: int, pairs: dict[int, int]) -> int | None:
    """Return the index of the bracket of the arguments, behind ``.each(…)`` and such; None if there are none."""
    while number < len(code) and code[number][2] in (
        ".",
        "each",
        "only",
        "skip",
        "concurrent",
        "for",
        "todo",
    ):
        number += 1
    if number >= len(code) or code[number][2] != "(" or number not in pairs:
        return None
    after = pairs[number] + 1
    if after < len(code) and code[after][2] == "(" and after in pairs:
        return after
    return number


def _find_body(
    code: Sequence[tuple[int, str, str]], opened: int, pairs: dict[int, int]
) -> tuple[int, int] | None:
    """Return the offsets of the code of the function that is the last argument."""
    depth_end = pairs[opened]
    number = opened + 1
    while number < depth_end:
        value = code[number][2]
        if value == "=>" and code[number + 1][2] != "{":
            return code[number + 1][0], code[depth_end][0]
        if value == "{" and number in pairs and code[number - 1][2] in ("=>", ")"):
            return code[number][0] + 1, code[pairs[number]][0]
        number = pairs[number] + 1 if number in pairs else number + 1
    return None


def _unquote(literal: str) -> str:
    text = literal[1:-1] if literal[:1] in "'\"`" and literal[-1:] == literal[:1] else ""
    return re.sub(r"\\(.)", r"\1", text)


def _read_code(text: str, calls: Sequence[_Call], found: _Call) -> list[str]:
    """Return the code of a test, after what it uses of the file and of the groups around it."""
    own = _lines(text, found.body)
    groups = [call for call in calls if call.body[0] < found.start < call.body[1]]
    scopes = [_lines(text, call.body) for call in groups[::-1]]
    scopes.append(text.split("\n"))
    names = set(_NAME.findall("\n".join(own)))
    before: list[str] = []
    for scope in scopes:
        chunks = [chunk for chunk in _chunks(scope) if len(chunk) <= HELPER_LINES]
        wanted: list[list[str]] = []
        while more := [chunk for chunk in chunks if chunk not in wanted and _is_used(chunk, names)]:
            wanted += more
            names.update(name for chunk in more for name in _NAME.findall("\n".join(chunk)))
        before = [*(row for chunk in chunks if chunk in wanted for row in chunk), *before]
    rows = [*before, "", *own] if before else own
    code = [row.rstrip() for row in rows if not _COMMENT.match(row)]
    return [*(f"// with each of: {row}" for row in [found.cases] if row), *code]


def _lines(text: str, place: tuple[int, int]) -> list[str]:
    start = text.rfind("\n", 0, place[0]) + 1
    body = text[place[0] : place[1]]
    margin = "" if text[start : place[0]].strip() else text[start : place[0]]
    return textwrap.dedent(margin + body).strip("\n").rstrip().split("\n")


def _chunks(rows: Sequence[str]) -> Iterator[list[str]]:
    """Yield the statements of a scope: a line that is not indented, and all that belongs to it."""
    chunk: list[str] = []
    for row in rows:
        if row[:1].strip() and row[0] not in ")]}" and chunk:
            yield "\n".join(chunk).rstrip().split("\n")
            chunk = []
        chunk.append(row)
    if chunk:
        yield "\n".join(chunk).rstrip().split("\n")


def _is_used(chunk: Sequence[str], names: set[str]) -> bool:
    """Return whether a statement defines something that is named, or prepares every test."""
    text = "\n".join(chunk)
    if _OF_TOOLS.search(text) and _IMPORT.match(text):
        return False
    if _BEFORE.match(text):
        return True
    found = _IMPORT.match(text) or _DEFINES.match(text)
    defined = _NAME.findall(next(filter(None, found.groups()), "")) if found else []
    return not names.isdisjoint(defined)


def _read_error(text: str) -> Iterator[str]:
    """Yield the lines of an error without stack, places and what repeats itself."""
    rows = [row for row in _JEST.sub("", text).split("\n") if not _STACK.match(row) and not _FACTS.match(row)]
    while rows and rows[-1].strip() in ("", "}"):
        rows.pop()
    seen: set[str] = set()
    for number, row in enumerate(rows):
        if row.strip() and row in seen and number > 1 and row == rows[0]:
            continue
        if row.strip() or (number and rows[number - 1].strip()):
            yield row.rstrip()
        seen.add(row)
