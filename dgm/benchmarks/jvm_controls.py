"""Test classes of the JVM: their methods found, and joined by one a file that must fail.

JUnit 3 to 6, TestNG, kotlin.test and Spock, in Java, Kotlin and Groovy. dgm imports this module, and puts it into
sandboxes as a file: standard library only (Python >= 3.9).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

SUFFIXES = (".java", ".kt", ".groovy", ".scala")
BUILD_FILES = ("pom.xml", "build.gradle", "build.gradle.kts", "build.sbt", "build.xml")
BUILT = ("target", "build", "out")
"""Folders beside a build file that tools fill: what a patch brings in them could pass for what was built."""
BINARIES = (".class", ".jar")
"""Ends of the names of files that classes are loaded from: those that a patch brings come before what is built."""
_PACKAGE = re.compile(r"\bpackage\s+([\w`]+(?:\s*\.\s*[\w`]+)*)")
_CLASS = re.compile(r"\b(?:class|interface|object|record|enum)\s+(\w+)")
_OF_TEST = re.compile(
    r"@(?:[\w.]+\.)?(?:Test|ParameterizedTest|RepeatedTest|TestFactory|TestTemplate|Theory)\b(?!\s*\.)"
)
_ANNOTATION = re.compile(r"\s*@[\w.:]+\s*")
_JAVA_METHOD = re.compile(
    r"\s*(?:(?:public|protected|private|static|final|synchronized|default|abstract)\s+)*"
    r"(?:<[^<>]*>\s*)?[\w.]+(?:\s*<[\w.,<>?\s]*>)?(?:\s*\[\s*\])*\s+(\w+)\s*\("
)
_KOTLIN_METHOD = re.compile(
    r"\s*(?:(?:public|internal|protected|final|open|override|suspend|abstract)\s+)*fun\s+(?:<[^<>]*>\s*)?(?:`([^`\n]+)`|(\w+))\s*\("
)
_OLD_METHOD = re.compile(r"\b(?:public\s+)?(?:final\s+)?void\s+(test\w+)\s*\(\s*\)")
_OF_CLASS = re.compile(r"\s*(?:(?:public|final|abstract|static)\s+)*class\s+\w+[^{};]*\{")
_PUBLIC_METHOD = re.compile(r"\bpublic\s+(?:final\s+|synchronized\s+)*void\s+(\w+)\s*\(")
_SPOCK_METHOD = re.compile(
    r"^[ \t]*(?:def|void)\s+(?:\"((?:\\.|[^\"\\\n])+)\"|'((?:\\.|[^'\\\n])+)')\s*\(", re.M
)
_EXTENDS = re.compile(r"\bclass\s+(\w+)[^{};]*?\bextends\s+(?:\w+\.)*(\w+)")
BASES = {"TestCase": "junit", "GroovyTestCase": "junit", "Specification": "spock"}
"""Frameworks of classes that make those which inherit from them test classes."""
_NAMED = {
    "org.junit.jupiter": re.compile(r"\borg\.junit\.jupiter\b"),
    "org.testng": re.compile(r"\borg\.testng\b"),
    "org.junit": re.compile(r"\borg\.junit\.(?:Test\b|\*|Assert\b)"),
    "kotlin.test": re.compile(r"\bkotlin\.test\.(?:Test\b|\*)"),
}
"""Names by which a file tells its framework; kotlin.test's assertions go with the methods of any."""
_TEXT = re.compile(
    r'`[^`\n]*`|"""(?:\\.|.)*?"""|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)
_BODIES = {
    "junit": "assertEquals({n}, {n} + 1)",
    "org.junit": "org.junit.Assert.assertEquals({n}, {n} + 1)",
    "org.junit.jupiter": "org.junit.jupiter.api.Assertions.assertEquals({n}, {n} + 1)",
    "org.testng": "org.testng.Assert.assertEquals({n}, {n} + 1)",
    "kotlin.test": "kotlin.test.assertEquals({n}, {n} + 1)",
    "spock": "assert {n} == {n} + 1",
}
"""Body of the method that must fail, by framework."""


class Case(NamedTuple):
    """A test method."""

    name: str
    at: int
    """Offset of its name in the file."""


def mask(text: str) -> str:
    """Return the text with blanks for comments, strings and characters; every offset and line stays."""
    return _TEXT.sub(lambda one: re.sub(r"[^\n]", " ", one[0]), text)


def find_package(text: str) -> str:
    """Return the package of a file; empty if it names none."""
    code = _TEXT.sub(lambda one: one[0] if one[0][0] == "`" else re.sub(r"[^\n]", " ", one[0]), text)
    found = _PACKAGE.search(code)
    return re.sub(r"[\s`]", "", found[1]) if found else ""


def find_classes(text: str) -> set[str]:
    """Return the classes that a file declares, with its package before them."""
    package = find_package(text)
    return {f"{package}.{name}" if package else name for name in _CLASS.findall(mask(text))}


def find_bases(texts: Iterable[str]) -> dict[str, str]:
    """Return the frameworks of the classes by which those that inherit from them are test classes."""
    pairs = [pair for text in texts if "extends" in text for pair in _EXTENDS.findall(mask(text))]
    found, more = dict(BASES), True
    while more:
        fresh = {name: found[base] for name, base in pairs if base in found and name not in found}
        found.update(fresh)
        more = bool(fresh)
    return found


def find_framework(text: str, bases: Mapping[str, str] = BASES) -> str:
    """Return the framework of a file of tests; empty if none is known.

    Args:
        text: of the file.
        bases: frameworks of the classes by which others are test classes.
    """
    code = mask(text)
    inherited = {bases[base] for _, base in _EXTENDS.findall(code) if base in bases}
    if inherited:
        return max(inherited)
    return next((name for name, named in _NAMED.items() if named.search(code)), "")


def find_cases(text: str, bases: Mapping[str, str] = BASES) -> list[Case]:
    """Return the test methods of a file, in their order; arguments are those of ``find_framework``."""
    code = mask(text)
    inherited = {bases[base] for _, base in _EXTENDS.findall(code) if base in bases}
    found: dict[int, Case] = {}
    for annotation in _OF_TEST.finditer(code):
        at = skip_brackets(code, annotation.end())
        while more := _ANNOTATION.match(code, at):
            at = skip_brackets(code, more.end())
        # A name in backticks is no string, and no comment.
        if (method := _KOTLIN_METHOD.match(text, at)) or (method := _JAVA_METHOD.match(code, at)):
            group = method.lastindex or 1
            found[method.start(group)] = Case(method[group], method.start(group))
        elif head := _OF_CLASS.match(code, at):
            found.update({case.at: case for case in _find_public(code, head.end())})
    if "junit" in inherited:
        for method in _OLD_METHOD.finditer(code):
            found.setdefault(method.start(1), Case(method[1], method.start(1)))
    if "spock" in inherited:
        for method in _SPOCK_METHOD.finditer(text):
            group = method.lastindex or 1
            found[method.start(group)] = Case(method[group], method.start(group))
    return [found[at] for at in sorted(found)]


def _find_public(code: str, start: int) -> Iterator[Case]:
    """Yield the public methods of a class that TestNG takes for tests as the whole class is annotated.

    Args:
        code: a text without comments and strings.
        start: offset behind the opening brace of the class.
    """
    methods = list(_PUBLIC_METHOD.finditer(code, start))
    around = _find_open(code, [method.start() for method in methods])
    for method, opened in zip(methods, around):  # noqa: B905  (Python 3.9)
        before = code[max(code.rfind(end, 0, method.start()) for end in "{};") + 1 : method.start()]
        if opened[-1:] == [start] and "@" not in before:
            yield Case(method[1], method.start(1))


def add_controls(texts: Mapping[str, str], run: tuple[str, int, int]) -> Iterator[tuple[str, str]]:
    """Yield paths and texts of the files of tests, with a method that must fail in the first class of each.

    Args:
        texts: files of tests and configuration, by their paths.
        run: the run's mark, number of its first file, whose method is ``{mark}c_{number}``, and a number that nobody
            can know.
    """
    mark, number, secret = run
    sources = {path: text for path, text in texts.items() if path.endswith(SUFFIXES)}
    bases = find_bases(sources.values())
    for path, text in sources.items():
        framework, cases = find_framework(text, bases), find_cases(text, bases)
        head = _find_head(mask(text), cases) if framework else 0
        if head:
            own = _make_control(framework, path, text[:head], f"{mark}c_{number}", secret)
            yield path, f"{text[:head]} {own} {text[head:]}"
            number += 1


def _make_control(framework: str, path: str, before: str, name: str, secret: int) -> str:
    """Return the method that must fail, in one line."""
    body = _BODIES[framework].format(n=secret)
    annotation = {
        "org.junit": "@org.junit.Test",
        "org.junit.jupiter": "@org.junit.jupiter.api.Test",
        "org.testng": "@org.testng.annotations.Test",
        "kotlin.test": "@kotlin.test.Test",
    }.get(framework, "")
    title = f"{'test' if framework == 'junit' else ''}{name}"
    if framework == "spock":
        return f'def "{title}"() {{ expect: {body} }};'
    if path.endswith(".kt"):
        return f"{annotation} fun {title}() {{ {body} }};"
    if path.endswith(".scala"):
        return f"{annotation} def {title}(): Unit = {{ {body} }};"
    in_interface = re.search(r"\binterface\s+\w+[^{}]*\{$", mask(before))
    return f"{annotation} {'default' if in_interface else 'public'} void {title}() {{ {body}; }};"


def skip_brackets(code: str, at: int) -> int:
    """Return the offset behind brackets that begin at an offset, or after blanks; else the offset."""
    start = re.compile(r"\s*\(").match(code, at)
    if not start:
        return at
    depth = 0
    for sign in re.compile(r"[()]").finditer(code, start.end() - 1):
        depth += 1 if sign[0] == "(" else -1
        if not depth:
            return sign.end()
    return at


def _find_head(code: str, cases: list[Case]) -> int:
    """Return the offset behind the opening brace of the class for the methods that must fail; 0 if there is none.

    Of several classes it is the outermost: one within it may be a mere example, which no run collects.
    """
    around = [open_ones for open_ones in _find_open(code, [case.at for case in cases]) if open_ones]
    return min(around, key=len)[-1] if around else 0


def _find_open(code: str, places: list[int]) -> Iterator[list[int]]:
    """Yield for each of ascending offsets those behind the braces that are open at it, the outermost first."""
    braces = re.compile(r"[{}]")
    opened: list[int] = []
    done = 0
    for place in places:
        for brace in braces.finditer(code, done, place):
            if brace[0] == "{":
                opened.append(brace.end())
            elif opened:
                opened.pop()
        done = place
        yield opened.copy()
