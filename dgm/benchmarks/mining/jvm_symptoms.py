"""The failing assertion of a test on the JVM: the test's own code up to the line that failed, and the exception.

Reads what Surefire, Gradle and JUnit's console launcher write of Java, Kotlin, Groovy with Spock, and ScalaTest.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from dgm.benchmarks.hidden_parts import closing_brace
from dgm.benchmarks.jvm_controls import find_classes, find_package, mask, skip_brackets, without_comments
from dgm.benchmarks.mining.jvm_bodies import Body, find_bodies
from dgm.benchmarks.mining.symptoms import CODE_LINES, ERROR_LINES, LINE_CHARS, Symptom, only_code
from dgm.benchmarks.plain_logs import plain_text

NOT_COMPILED = "does not compile: "
NOT_THROWN = re.compile(
    r"but (?:nothing|no exception) was thrown|^(?:\S+: )?Expected exception: |Expecting code to raise a throwable"
    r"|but was completed successfully|should have thrown an exception",
    re.M,
)
"""Words of the frameworks on an exception that did not come."""
ASSERTIONS = frozenset({
    "AssertionError", "AssertionFailedError", "ComparisonFailure", "MultipleFailuresError",
    "AssertJMultipleFailuresError",
    "ConditionNotSatisfiedError", "SpockComparisonFailure", "SpockAssertionError", "WrongExceptionThrownError",
    "UnsatisfiedCondition", "TestFailedException", "FileComparisonFailure",
})  # fmt: skip
"""Exceptions by which assertions fail."""
_FRAME = re.compile(r"^\s*at .*\(([^()\n:]+\.(?:java|kt|groovy|scala)):(\d+)\)", re.M)
_STACK = re.compile(
    r"^\s*(?:at \S.*\(.*\)|at [\w$./@-]+\.[\w$<>]+|\.\.\. \d+ (?:more|common frames omitted)|Suppressed: .*)\s*$"
)
_COMPILER = re.compile(
    r"^(?:\[error\] |\[ERROR\] |e: )?\S+\.(?:java|kt|scala|groovy):\S*:?\s+(?:error: )?(?P<said>\S.*)$", re.I
)
_OF_SYMBOL = re.compile(r"^(?:\[ERROR\])?\s+(?:symbol|location)\s*: .*$")
_HOME = re.compile(
    r"^(\s*(?:Caused by: )?)(?:org\.opentest4j|org\.junit|junit\.framework|org\.spockframework\.runtime|java\.lang"
    r"|org\.assertj\.core\.error|org\.scalatest\.exceptions)\.(?=[A-Z]\w*(?::|$))", re.M
)  # fmt: skip
_COMPARED = re.compile(r"(.*)expected: ?<(.*)> but was: ?<(.*)>", re.DOTALL)
_IDENTITY = re.compile(r"(\b(?:[a-z_]\w*\.)*[A-Z][\w$]*)@[0-9a-f]{5,8}\b")
_TEMPORARY = re.compile(r"/tmp/(?:junit|spock)\w*-?\w*\d/?")
_SOURCE = re.compile(r"@(\w*Source)\b(?:\s*\(\s*(?:value\s*=\s*)?\{?\s*\"(\w+)\")?")
_ELSEWHERE = frozenset({"CsvFileSource", "ArgumentsSource"})
"""Annotations whose values stand in other files."""
_PROVIDER = re.compile(r"\bdataProvider\s*=\s*\"([^\"]+)\"")
_PARAMETERS = re.compile(r"@(?:Parameterized\.)?Parameters\b")
_CONTROL = re.compile(r"\s*(?:\}\s*)?(?:if|for|while|try|else|when|do|catch|finally|switch|synchronized)\b")
_CATCH = re.compile(r"\}\s*(?:catch|finally)\b")
_CONTINUES = re.compile(r"\s*(?:\??\.\w|\?:|&&|\|\|)")
_GOES_ON = re.compile(r"(?:[=+*,|&]|->|=>)\s*$")
_WHERE = re.compile(r"^[ \t]*where:", re.M)


def find_jvm_symptom(failure: str, test: str, files: Sequence[str]) -> Symptom:
    """Return what a failing test runs, and how it ends.

    Args:
        failure: the exception with its stack, or what a compiler said.
        test: its id: the file, nested classes and the method, and the parameters as the tool reports them.
        files: the texts of the test files.

    Raises:
        ValueError: no file, or more than one, has the test, or its code is too long, or there is no error.
    """
    path, _, name = test.partition("::")
    failure = plain_text(failure).replace("\r\n", "\n")
    error = _read_error(failure)
    if not error:
        raise ValueError("the output of the tests holds no error that could be told")
    lines = _find_lines(failure, PurePosixPath(path).name)
    found = {
        "\n".join(_read_code(text, path, body, lines))
        for text in _choose_files(path, files)
        for body in _choose_bodies(text, path, name, lines)
    }
    return Symptom(only_code(found), (), error)


def _read_error(failure: str) -> str:
    """Return exception and message without the stack; of a compiler its messages without places."""
    # Of a long message the middle is left out.
    rows = failure.partition("\n[...]\n")[0].strip("\n").split("\n")
    said = [found["said"] for row in rows if (found := _COMPILER.match(row))]
    if said and not any(_STACK.match(row) for row in rows):
        more = [row.removeprefix("[ERROR]").rstrip() for row in rows if _OF_SYMBOL.match(row)]
        return "\n".join([f"{NOT_COMPILED}{said[0]}", *list(dict.fromkeys(more))[:2]])
    said = [_shorten(row.rstrip()) for row in rows if row.strip() and not _STACK.match(row)]
    text = _IDENTITY.sub(r"\1", _HOME.sub(r"\1", "\n".join(said[:ERROR_LINES])))
    return _TEMPORARY.sub("", text).strip()


def _shorten(row: str) -> str:
    """Return a line of a message; of two long values that differ the part around their first difference."""
    if len(row) <= LINE_CHARS:
        return row
    compared = _COMPARED.fullmatch(row)
    if compared is None:
        return f"{row[:LINE_CHARS]}…"
    before, wanted, got = compared.groups()
    pairs = enumerate(zip(wanted, got, strict=False))
    differs = next((at for at, (one, other) in pairs if one != other), min(len(wanted), len(got)))
    start = max(0, differs - LINE_CHARS // 4)
    parts = [
        f"{'…' if start else ''}{one[start : start + LINE_CHARS]}{'…' if len(one) > start + LINE_CHARS else ''}"
        for one in (wanted, got)
    ]
    return f"{before}expected: <{parts[0]}>\n but was: <{parts[1]}>"


def _find_lines(failure: str, file: str) -> list[int]:
    """Return the lines of a file that a stack names, the innermost first: of the exception, else of a cause."""
    own, *causes = re.split(r"^Caused by: ", failure, flags=re.M)
    for part in (own, *causes):
        if found := [int(line) for name, line in _FRAME.findall(part) if name == file]:
            return found
    return []


def _choose_files(path: str, files: Sequence[str]) -> list[str]:
    """Return the texts that may be those of a file: of its class and package, else all."""
    place = PurePosixPath(path)

    def is_it(text: str) -> bool:
        package = find_package(text)
        name = f"{package}.{place.stem}" if package else place.stem
        folder = package.replace(".", "/")
        return name in find_classes(text) and f"/{place.parent}".endswith(f"/{folder}" if folder else "")

    return [text for text in files if is_it(text)] or list(files)


def _choose_bodies(text: str, path: str, name: str, lines: Sequence[int]) -> list[Body]:
    """Return the functions that may be a test: those of its name, by the stack if there are several or none."""
    bodies = find_bodies(text, path)
    named = [body for body in bodies if body.names(name)]
    if len(named) == 1:
        return named
    for line in reversed(lines):
        at = _offset_of(text, line)
        around = [body for body in (named or bodies) if body.begin <= at <= body.end]
        if around:
            return [min(around, key=lambda body: body.end - body.start)]
    return named


def _offset_of(text: str, line: int) -> int:
    """Return the offset of the end of a line, whose number is counted from 1."""
    rows = text.split("\n")
    return len("\n".join(rows[:line]))


def _read_code(text: str, path: str, body: Body, lines: Sequence[int]) -> list[str]:
    """Return the code of a test up to its failing line, with the values of its parameters."""
    whole = without_comments(text)
    own, first = whole[body.start : body.end].split("\n"), text.count("\n", 0, body.start) + 1
    kept = [
        number
        for number, row in enumerate(text[body.start : body.end].split("\n"))
        if own[number].strip() or not row.strip()
    ]
    failed = max((line - first for line in lines if 0 <= line - first < len(own)), default=-1)
    code = "\n".join(own[number] for number in kept)
    if failed >= 0:
        code = _cut(code, max(0, sum(number <= failed for number in kept) - 1), path)
    shown = _tidy(code)
    head = whole[body.begin : body.named_at]
    values = [] if body.titled else _find_values(whole, path, body, head)
    if not values:
        return shown
    opens = whole.index("(", body.named_at)
    parameters = whole[opens : skip_brackets(mask(text), opens)]
    word = "fun" if path.endswith(".kt") else "void"
    return [
        *values,
        f"{word} example{' '.join(parameters.split())} {{",
        *(f"    {row}".rstrip() for row in shown),
        "}",
    ]


def _tidy(code: str) -> list[str]:
    """Return the lines of a body without its margin, and without blank lines at both ends or after one another."""
    rows = [row.rstrip() for row in textwrap.dedent(code.strip("\n")).strip().split("\n")]
    if "\n" in code.strip() and not code[: len(code) - len(code.lstrip())].count("\n"):
        rows = [row.strip() for row in rows]
    return [row for number, row in enumerate(rows) if row or rows[number - 1]]


def _cut(own: str, failed: int, path: str) -> str:
    """Return a body up to the end of the statement in a line, its open blocks closed."""
    code = mask(own)
    rows, plain = own.split("\n"), code.split("\n")
    end = failed
    java = path.endswith(".java")
    while end + 1 < len(rows) and not (_ends_java if java else _ends_line)(plain, failed, end):
        end += 1
    kept = "\n".join(rows[: end + 1])
    closings: list[str] = []
    for at in _open_braces(code[: len(kept)]):
        close = closing_brace(code, at) - 1
        indent = re.match(r"\s*", kept[kept.rfind("\n", 0, at) + 1 :])
        margin = indent[0] if indent else ""
        if close > at and _CATCH.match(code, close):
            closings.append(margin + own[close : _end_of_catches(code, close)])
        else:
            closings.append(f"{margin}}}")
    where = _WHERE.search(code, len(kept)) if path.endswith(".groovy") else None
    cases = ["", own[where.start() :].rstrip()] if where else []
    return "\n".join([kept, *reversed(closings), *cases])


def _ends_java(plain: Sequence[str], failed: int, end: int) -> bool:
    del failed
    text = "\n".join(plain[: end + 1])
    open_ones = text.count("(") + text.count("[") - text.count(")") - text.count("]")
    return open_ones <= 0 and plain[end].rstrip().endswith((";", "{", "}"))


def _ends_line(plain: Sequence[str], failed: int, end: int) -> bool:
    """Return whether a statement ends with a line, in a language in which most do."""
    text = "\n".join(plain[failed : end + 1])
    counted = {sign: text.count(sign) for sign in "()[]{}"}
    if counted["("] > counted[")"] or counted["["] > counted["]"]:
        return False
    if counted["{"] > counted["}"] and not _CONTROL.match(plain[failed]):
        return False
    return not (_CONTINUES.match(plain[end + 1]) or _GOES_ON.search(plain[end]))


def _open_braces(code: str) -> list[int]:
    """Return the offsets of the braces that are open at the end of a text, the outermost first."""
    found: list[int] = []
    for brace in re.finditer(r"[{}]", code):
        if brace[0] == "{":
            found.append(brace.start())
        elif found:
            found.pop()
    return found


def _end_of_catches(code: str, close: int) -> int:
    """Return the offset behind the last of the blocks that follow a block of ``try``."""
    end = close + 1
    while _CATCH.match(code, end - 1):
        after = closing_brace(code, code.find("{", end))
        if not after:
            break
        end = after
    return end


def _find_values(text: str, path: str, body: Body, head: str) -> list[str]:
    """Return the code that gives a test's parameters their values; empty if it has none.

    Raises:
        ValueError: it is too long, or not to be found.
    """
    sources = list(_SOURCE.finditer(head))
    provider = _PROVIDER.search(head)
    shown = list(_annotations(head, sources))
    wanted = {found[2] or body.name for found in sources if found[1] == "MethodSource"}
    wanted |= {provider[1]} if provider else set()
    others = [other for other in find_bodies(text, path) if other.start != body.start]
    givers = [
        other
        for other in others
        if (other.name in wanted or any(f'"{name}"' in text[other.begin : other.named_at] for name in wanted))
        or _PARAMETERS.search(text[other.begin : other.named_at])
    ]
    if {found[1] for found in sources} & _ELSEWHERE or (wanted and not givers):
        raise ValueError("no test file shows the values of the failing test's parameters")
    for giver in givers:
        rows = textwrap.dedent(text[giver.begin : giver.end + 1].strip("\n")).strip().split("\n")
        if len(rows) > CODE_LINES:
            raise ValueError("the values of the failing test's parameters are too long to be told")
        shown += [*rows, ""]
    return shown


def _annotations(head: str, sources: Sequence[re.Match[str]]) -> Iterator[str]:
    """Yield the lines of the annotations that hold values."""
    for found in sources:
        after = skip_brackets(mask(head), found.end(1))
        yield from textwrap.dedent(head[found.start() : after]).split("\n")
