"""The functions of a file of tests in Java, Kotlin and Groovy (Spock's too), and the titled blocks of ScalaTest."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dgm.benchmarks.hidden_parts import closing_brace
from dgm.benchmarks.jvm_controls import mask, skip_brackets

_CLASS = re.compile(r"\b(?:class|interface|object|record|enum)\s+(\w+)[^{};]*\{")
_JAVA = re.compile(r"([A-Za-z_$][\w$]*)\s*\(")
_TYPE = re.compile(r"(\w+|[>\]?])\s*$")
_NO_TYPES = frozenset({"new", "return", "else", "throw", "assert", "case", "in", "do", "fun"})
_OPENS = re.compile(r"\s*(?:throws\s+[\w.,\s]+?)?\{")
_KOTLIN = re.compile(r"\bfun\s+(?:<[^<>]*>\s*)?(?:`([^`\n]+)`|(\w+))\s*\(")
_OPENS_KOTLIN = re.compile(r"\s*(?::\s*[\w.<>?, ]+?)?\s*(?:=[^{}\n;]*)?\{(?:[^\S\n]*[\w, ]+->)?")
_EQUALS = re.compile(r"\s*(?::\s*[\w.<>?, ]+?)?\s*=\s*")
_SPOCK = re.compile(r"^[ \t]*(?:def|void)\s+(?:\"((?:\\.|[^\"\\\n])+)\"|'((?:\\.|[^'\\\n])+)')\s*\(", re.M)
_TITLED = re.compile(r'"((?:\\.|[^"\\\n])+)"[^\n"{}]*\{(?:[^\S\n]*[\w, ]+=>)?[^\S\n]*$', re.M)


@dataclass(frozen=True, slots=True)
class Body:
    """A function of a file of tests, or a block with a title."""

    name: str
    """Its own name or title."""
    inside: str
    """The nested classes around it, with a dot behind each."""
    begin: int
    """Offset at which its declaration begins, annotations included."""
    named_at: int
    start: int
    """Offset behind its opening brace."""
    end: int
    """Offset of its closing brace."""
    titled: bool = False
    """True if the name is a title, of which a report may name more or less."""

    def names(self, reported: str) -> bool:
        """Return whether a report's name is that of this test, parameters and the like behind it."""
        if self.titled:
            return f" {reported}".endswith(f" {self.name}") or reported.endswith(f".{self.name}")
        if "#" in self.name:
            # Spock puts values in the places of names.
            parts = re.split(r"#\w+(?:\.\w+|\(\))*", self.name)
            return bool(re.match(".*".join(map(re.escape, parts)), reported, re.DOTALL))
        name = f"{self.inside}{self.name}"
        if reported == name or reported.startswith(tuple(f"{name}{sign}" for sign in "([{")):
            return True
        return " " in name and reported.startswith(f"{name} ")


def find_bodies(text: str, path: str) -> list[Body]:
    """Return the functions and titled blocks of a file, in their order.

    Args:
        text: of the file.
        path: its name, whose end tells the language.
    """
    code = mask(text)
    classes = [
        (one[1], one.start(), closing_brace(code, one.end() - 1) or len(code))
        for one in _CLASS.finditer(code)
    ]
    found = {
        body.start: body
        for find in _FINDERS.get(path.rpartition(".")[2], ())
        for body in find(text, code)
        if body.end > body.start
    }
    return [_place(body, classes) for _, body in sorted(found.items())]


def _place(body: Body, classes: Sequence[tuple[str, int, int]]) -> Body:
    around = [name for name, start, end in classes if start < body.named_at < end]
    inside = "".join(f"{name}." for name in around[1:])
    return Body(body.name, inside, body.begin, body.named_at, body.start, body.end, body.titled)


def _find_java(text: str, code: str) -> Iterator[Body]:
    del text
    for method in _JAVA.finditer(code):
        before = _TYPE.search(code, max(0, method.start() - 200), method.start())
        opens = _OPENS.match(code, skip_brackets(code, method.end() - 1))
        if before and before[1] not in _NO_TYPES and opens:
            yield _body(code, method[1], method.start(), opens.end())


def _find_kotlin(text: str, code: str) -> Iterator[Body]:
    for method in _KOTLIN.finditer(text):
        group = method.lastindex or 1
        opens = _OPENS_KOTLIN.match(code, skip_brackets(code, method.end() - 1))
        if not code.startswith("fun", method.start()):
            continue
        if opens:
            yield _body(code, method[group], method.start(group), opens.end())
        elif equals := _EQUALS.match(code, skip_brackets(code, method.end() - 1)):
            begin, end = _find_begin(code, method.start(group)), _end_of_expression(code, equals.end())
            yield Body(method[group], "", begin, method.start(group), equals.end(), end)


def _find_spock(text: str, code: str) -> Iterator[Body]:
    for method in _SPOCK.finditer(text):
        group = method.lastindex or 1
        opens = _OPENS.match(code, skip_brackets(code, method.end() - 1))
        if code[method.start() : method.start(group)].strip() and opens:
            yield _body(code, method[group], method.start(group), opens.end())


def _find_titled(text: str, code: str) -> Iterator[Body]:
    for title in _TITLED.finditer(text):
        opens = code.find("{", title.end(1))
        if not code[title.start()].strip() and 0 <= opens < title.end():
            end = closing_brace(code, opens)
            begin = text.rfind("\n", 0, title.start()) + 1
            yield Body(title[1], "", begin, title.start(1), title.end(), end - 1, titled=True)


_FINDERS = {
    "java": (_find_java,),
    "kt": (_find_kotlin, _find_titled),
    "groovy": (_find_java, _find_spock),
    "scala": (_find_titled,),
}


def _body(code: str, name: str, named_at: int, start: int) -> Body:
    opened = code.rfind("{", 0, start)
    return Body(name, "", _find_begin(code, named_at), named_at, start, closing_brace(code, opened) - 1)


def _end_of_expression(code: str, at: int) -> int:
    """Return the offset of the end of the line that ends an expression."""
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place] in "([{") - (code[place] in ")]}")
        if depth < 0 or (not depth and code[place] == "\n"):
            return place
    return len(code)


def _find_begin(code: str, at: int) -> int:
    """Return the offset at which the declaration around an offset begins: behind what ends the one before it."""
    depth = 0
    for place in range(at - 1, -1, -1):
        sign = code[place]
        depth += (sign == ")") - (sign == "(")
        if depth <= 0 and sign in "{};":
            return place + 1
    return 0
