"""A failing test as a statement may show it: its whole code with its set-up and helpers, and the end of its output.

A parser of the language finds where a test and its helpers begin and end; the names in their first lines tell which
they are. Comments and stacks are left out, as they name issues and places in files.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

from dgm.benchmarks.logs import plain_text

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_TEST_LINES, MOST_LINES, HELPER_LINES = 200, 320, 60
"""Maximum lines of a test that is shown, of all code, and of one helper; a longer helper is left out."""
ERROR_LINES, LINE_CHARS = 20, 300
_GRAMMARS: Mapping[str, tuple[str, str]] = {
    "py": ("python", "language"),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), ("javascript", "language")),
    **dict.fromkeys(("ts", "mts", "cts"), ("typescript", "language_typescript")),
    "tsx": ("typescript", "language_tsx"),
    "go": ("go", "language"),
    "rs": ("rust", "language"),
    "java": ("java", "language"),
    "kt": ("kotlin", "language"),
    "scala": ("scala", "language"),
    "groovy": ("groovy", "language"),
    **dict.fromkeys(("c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx"), ("cpp", "language")),
}
"""Suffix of a file → its grammar's package and function."""
_WRAPPERS = re.compile(r"preproc_(?!include|def)\w+|linkage_specification")
_BODY = re.compile(
    r"block|class_body|declaration_list|field_declaration_list|template_body|statement_block|lambda_literal|interface_body"
)
_CONTAINER = re.compile(
    r"\s*(?:(?:@(?!\w+(?:\([^)]*\))?\s)|#\[).*\n\s*|@\w+(?:\([^)]*\))?\s+|(?:export|default|public|private|final|abstract|static|sealed|open|inner|data|case|pub|inline)\s+)*"
    r"(?:class|namespace|mod|object|impl|struct)\b|\s*(?:\w+\.)?(?:describe|context|suite|module|feature)\b[\w.]*\("
)
_IS_TEST = re.compile(
    r"\bdef test|\bfunc (?:Test|Benchmark|Example|Fuzz)|#\[(?:\w+::)*test\b|@(?:Parameterized|Repeated)?Test\b"
    r"|^\s*(?:\w+\.)?(?:it|test|specify)\b[\w.]*\s*[(`]|^\s*(?:\w*TEST\w*|SCENARIO\w*)\s*\(|^\s*(?:public )?void test"
    r"|^\s*def \"|^\s*\".*\" (?:should|in|when)\b|^\s*test\(\"",
    re.M,
)
_DEFINES = re.compile(
    r"\b(?:def|class|func|fn|fun|struct|interface|trait|enum|type|const|static|let|var|val|mod|object|function|void|record)"
    r"\s+(?:\([^)]*\)\s*)?(?:mut\s+)?[`\"]?((?<=`)[^`]+|(?<=\")[^\"]+|[\w$]+)|([\w$]+)\s*(?::[^=]*)?=(?!=)|([\w$]+)\s*\("
)
_MACRO = re.compile(r"^\s*\w*TEST\w*\s*\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
_TITLE = re.compile(r"""(["'`])((?:\\.|(?!\1).)+)\1""")
_VALUE = re.compile(r"\$\{[^}]*\}|%[sdifjoOp]|\$[A-Za-z_][\w.]*|\{\w*\}")
"""The place of a value in the title of a test that a loop or a table makes."""
_IMPORT = re.compile(r"\s*(?:import\b|from\b|#include|use |package |const .*\brequire\(|export \* )")
_SETUP = re.compile(
    r"\b(?:set_?up|setup_\w+|before|beforeEach|beforeAll|BeforeEach|BeforeAll|Before|SetUp|fixture\([^)]*autouse)\b",
    re.I,
)
_COMMENT = re.compile(r"\s*(?:#(?!\[|include|define|if|else|endif|undef|pragma)|//|/\*|\*(?:\s|/|$))")
_KEY_BESIDE_CODE = re.compile(
    r"""^([^'"#/]*[^'"#/\s])\s+(?:#|//) .*(?:https?://|#\d|\b(?:issue|bug|pr|gh)\b\W*\d).*$""", re.I
)
"""A row of code with a comment beside it that names an issue."""
_WORD = re.compile(r"[^\W\d]\w*")
_STACK = re.compile(
    r"\s+at (?:.*[(/:].*|async .*)$|\s*(?:❯|File \"|node:internal)|\s*>?\s*\d+ \||\s*[\^~]+\s*$"
    r"|\s*(?:---|===|\[\d|note:|stack backtrace)|\s*\d+: "
)
_PLACE = re.compile(r"\S*[\w/.-]+\.[A-Za-z]{1,6}[:(]\d+(?::\d+)?\)?:?[ \t]*")
_HINT = re.compile(
    r"\s*(?:Use -v to get|Omitting \d+ identical items|\+\s+where <(?:function|class|bound method)\b)"
)
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class _Unit:
    """A part of a file that stands for itself: a function, a class, a constant, a test."""

    text: str
    names: frozenset[str]
    inside: tuple[int, ...]
    """Numbers of the containers around it."""
    is_test: bool
    is_container: bool


def end_of_output(output: str) -> str:
    """Return the end of a test's output: pytest's own lines of the error, or the last lines without stacks."""
    rows = plain_text(output).replace("\r\n", "\n").split("\n")
    marked = [row[1:] for row in rows if re.match(r"E(?:   |$)", row)]
    kept = marked or [_PLACE.sub("", row) for row in rows if not _STACK.match(row)]
    kept = [_ADDRESS.sub("", row).rstrip() for row in kept if row.strip() and not _HINT.match(row)]
    kept = textwrap.dedent("\n".join(kept)).split("\n")
    chosen = kept[:ERROR_LINES] if marked else kept[-ERROR_LINES:]
    return "\n".join(row if len(row) <= LINE_CHARS else f"{row[:LINE_CHARS]}…" for row in chosen)


def find_code(test: str, files: Mapping[str, str]) -> str:
    """Return the code of a test, behind what prepares it.

    Args:
        test: its id, ``FILE::NAME``.
        files: the texts of the test files by their paths.

    Raises:
        ValueError: it is not found, or is too long.
    """
    path, _, name = test.partition("::")
    by_build = path.endswith(("CMakeLists.txt", ".cmake"))
    texts = dict(files) if by_build else {path: files[path]} if path in files else {}
    units = {file: list(_find_units(file, text)) for file, text in texts.items()}
    for wanted in _names_of(name):
        found = [
            (file, unit)
            for file in units
            for unit in units[file]
            if not unit.is_container and _is_named(unit, wanted)
        ]
        tests = [pair for pair in found if pair[1].is_test] or found
        if len({unit.text for _, unit in tests}) > 1:
            raise ValueError("several tests have the name of the failing one")
        if tests:
            return _with_helpers(
                *tests[0], {other: list(_find_units(other, text)) for other, text in files.items()}
            )
    # A whole program is the test.
    stem = re.sub(r"\W|_", "", name).lower()
    programs = [
        text
        for file, text in texts.items()
        if by_build and _stem(file) in (stem, f"{stem}test", f"test{stem}")
    ]
    if len(programs) == 1 and len(programs[0].split("\n")) <= MOST_TEST_LINES:
        return _clean(programs[0])
    raise ValueError("no test file shows the code of the failing test")


def _is_named(unit: _Unit, wanted: str) -> bool:
    """Return whether a part has a name, or a title that a loop or a table completes to it."""
    if wanted in unit.names:
        return True
    templates = (_VALUE.split(name) for name in unit.names if _VALUE.search(name))
    return any(
        re.fullmatch(".*".join(map(re.escape, parts)), wanted, re.DOTALL) for parts in templates if any(parts)
    )


def _stem(path: str) -> str:
    return re.sub(r"\W|_", "", path.rpartition("/")[2].partition(".")[0]).lower()


def _names_of(name: str) -> Iterator[str]:
    """Yield the names under which a test may stand in its file, the most exact first."""
    plain = re.sub(r"\[.*\]$|[({<].*$| - .*$", "", name, flags=re.DOTALL).strip()
    parts = [name.rpartition("::")[2], name.rpartition(" > ")[2], plain, plain.rpartition("::")[2]]
    parts += [
        plain.rpartition(".")[2],
        plain.partition("/")[0],
        *plain.split("/"),
        *reversed(name.split(" > ")),
    ]
    yield from dict.fromkeys(part for part in parts if part)


def _with_helpers(path: str, test: _Unit, units: Mapping[str, Sequence[_Unit]]) -> str:
    """Return the code of a test behind what prepares it, and behind the definitions that it names."""
    if test.text.count("\n") >= MOST_TEST_LINES:
        raise ValueError(f"the failing test has more than {MOST_TEST_LINES} lines")
    known = [
        (file, unit)
        for file in units
        for unit in units[file]
        if not unit.is_test and not unit.is_container and unit.text != test.text
    ]
    around = [
        pair
        for pair in known
        if pair[0] == path
        and pair[1].inside == test.inside[: len(pair[1].inside)]
        and _SETUP.search(pair[1].text)
    ]
    chosen = [unit for _, unit in around]
    words, before = set[str](), -1
    while len(words) != before:
        before = len(words)
        words |= {word for unit in (test, *chosen) for word in _WORD.findall(unit.text)}
        # What stands in another class, or in another file's, is not named so.
        chosen += [
            unit
            for file, unit in known
            if unit not in chosen
            and unit.names & words
            and unit.text.count("\n") < HELPER_LINES
            and (unit.inside == test.inside[: len(unit.inside)] if file == path else not unit.inside)
        ]
    order = [unit for file in units for unit in units[file] if unit in chosen]
    texts = [_clean(unit.text) for unit in order]
    while texts and sum(text.count("\n") + 2 for text in texts) > MOST_LINES - test.text.count("\n"):
        texts.pop(0)
    return "\n\n".join([*texts, _clean(test.text)])


def _clean(text: str) -> str:
    """Return code without its margin, comments and the text that explains it."""
    rows = [_KEY_BESIDE_CODE.sub(r"\1", row) for row in text.split("\n") if not _COMMENT.match(row)]
    text = textwrap.dedent("\n".join(rows)).strip("\n")
    return re.sub(
        r'(:\n)\s+[rR]?("""|\'\'\')(?:(?!\2).)*\2[ \t]*\n', r"\1", text, count=1, flags=re.DOTALL
    ).rstrip()


def _find_units(path: str, text: str) -> Iterator[_Unit]:
    """Yield the parts of a file in their order, those inside of containers too."""
    grammar = _GRAMMARS.get(path.rpartition(".")[2])
    if grammar is None:
        return
    data = text.encode("utf-8", "replace")
    yield from _units_below(_parser(*grammar).parse(data).root_node, data.split(b"\n"), ())  # type: ignore[attr-defined]


@cache
def _parser(package: str, function: str) -> object:
    from tree_sitter import Language, Parser

    return Parser(Language(getattr(import_module(f"tree_sitter_{package}"), function)()))


def _units_below(node: "Node", rows: Sequence[bytes], inside: tuple[int, ...]) -> Iterator[_Unit]:
    children = [child for child in node.named_children if not child.type.endswith("comment")]
    spans: list[list[Node]] = []
    for before, child in pairwise([None, *children]):
        assert child is not None
        # A macro's body, or an attribute's function.
        joins = before is not None and (
            (child.type == "compound_statement" and before.type == "expression_statement")
            or before.type == "attribute_item"
        )
        if joins:
            spans[-1].append(child)
        else:
            spans.append([child])
    for span in spans:
        if _WRAPPERS.fullmatch(span[0].type):
            yield from _units_below(span[0], rows, inside)
            continue
        first, last = span[0].start_point.row, span[-1].end_point.row
        if span[-1].end_point.column == 0 and last > first:
            last -= 1
        text = b"\n".join(rows[first : last + 1]).decode("utf-8", "replace")
        if _IMPORT.match(text):
            continue
        # A class without tests is a helper as a whole.
        body = _find_body(span[-1]) if _CONTAINER.match(text) and _IS_TEST.search(text) else None
        named = _name_row(span) - first
        lines = text.split("\n")
        is_test = bool(_IS_TEST.search("\n".join(lines[: named + 1])))
        yield _Unit(text, _names_in(lines[named : named + 2]), inside, is_test, body is not None)
        if body is not None:
            yield from _units_below(body, rows, (*inside, first))


def _find_body(node: "Node") -> "Node | None":
    """Return the first node of a container that holds its parts."""
    level: list[Node] = [node]
    while level:
        if found := next((each for each in level if each is not node and _BODY.fullmatch(each.type)), None):
            return found
        level = [child for each in level for child in each.named_children]
    return None


def _name_row(span: "Sequence[Node]") -> int:
    """Return the row of the name that a part defines, behind its decorators."""
    inner = span[-1] if span[0].type == "attribute_item" else span[0]
    while inner.type in ("decorated_definition", "export_statement", "template_declaration"):
        inner = inner.named_children[-1]
    table = (
        inner.named_children[0] if inner.type == "expression_statement" and inner.named_children else inner
    )
    function = table.child_by_field_name("function")
    if table.type == "call_expression" and function and function.type == "call_expression":
        # test.each([…])(title, body): the title is behind the table.
        arguments = table.child_by_field_name("arguments")
        return (arguments or table).start_point.row
    named = inner.child_by_field_name("name") or inner.child_by_field_name("declarator") or inner
    return named.start_point.row


def _names_in(rows: Sequence[str]) -> frozenset[str]:
    """Return what a part may be called: names that its row defines, and titles in quotes there or in the next row."""
    names = {name for found in _DEFINES.findall(rows[0]) for name in found if name}
    titles = {found[1] for row in rows for found in _TITLE.findall(row)}
    macros = {f"{suite}.{name}" for suite, name in _MACRO.findall(rows[0])}
    return frozenset(names | titles | macros)
