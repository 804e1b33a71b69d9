"""Test classes of the JVM: their methods found, marked with a name of the run, and joined by methods that must fail.

JUnit 3 to 6, TestNG, kotlin.test and Spock, in Java, Kotlin and Groovy. dgm imports this module, and puts it into
sandboxes as a file: standard library only (Python >= 3.9).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
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
_OVERRIDE = re.compile(r"@Override\b|\boverride\b")
_CALL = re.compile(
    r"(?<![\w.])(\w+)\s*\(|\b(?:this|super)\s*\.\s*(\w+)\s*\(|\b(?:this|\w*Test\w*)\s*::\s*(\w+)"
)
_STRING = re.compile(r"[\"'#.](\w+)(?:\(\))?[\"']")
"""Name within quotes: what a test depends on, or is called by reflection."""
_VARIABLE = re.compile(r"\b(\w+)\s+(\w+)\s*[=;]")
_OF_OWNER = re.compile(r"\b(\w+)\s*(?:\.\s*(?:this|super)\s*)?(?:\.|::)\s*(\w+)\b")
_OF_NEW = re.compile(r"\b(\w+)\s*\([^()]*\)\s*\.\s*(\w+)\s*\(")
_IMPORT = re.compile(r"^[ \t]*import\s+(?:static\s+)?([\w.]+)\.(\w+|\*)", re.M)
_TEXT = re.compile(
    r'`[^`\n]*`|"""(?:\\.|.)*?"""|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)
_SAME = "{n}, {n} + 1"
_BODIES = {
    "junit": ("junit.framework.Assert.fail()", "assertEquals({n}, {n} + 1)", "assertTrue({n} == {n} + 1)"),
    "org.junit": ("org.junit.Assert.fail()", f"org.junit.Assert.assertEquals({_SAME})"),
    "org.junit.jupiter": (
        'org.junit.jupiter.api.Assertions.fail("it must")',
        f"org.junit.jupiter.api.Assertions.assertEquals({_SAME})",
    ),
    "org.testng": ("org.testng.Assert.fail()", f"org.testng.Assert.assertEquals({_SAME})"),
    "kotlin.test": ('kotlin.test.fail("it must")', f"kotlin.test.assertEquals({_SAME})"),
    "spock": ("assert {n} == {n} + 1", 'throw new AssertionError((Object) "it must")'),
}
"""Bodies of the methods that must fail, by framework."""
_LIBRARIES = {
    "org.assertj": "org.assertj.core.api.Assertions.assertThat({n}).isEqualTo({n} + 1)",
    "org.hamcrest": 'org.hamcrest.MatcherAssert.assertThat("it must", {n} == {n} + 1)',
    "com.google.common.truth": "com.google.common.truth.Truth.assertThat({n}).isEqualTo({n} + 1)",
}
"""The same, by library of assertions that a file imports."""
_SHORT = {
    "assertEquals": "assertEquals({n}, {n} + 1)",
    "assertTrue": "assertTrue({n} == {n} + 1)",
    "assertThat": "assertThat({n}).isEqualTo({n} + 1)",
}
"""The same, by method that a file imports: a class of the code from which a test class inherits could have another."""


class Case(NamedTuple):
    """A test method."""

    name: str
    marked_at: int
    """Offset in the file at which its name gets the mark."""


class MarkedFile(NamedTuple):
    """A file of tests as it is laid out."""

    name: str
    text: str
    cases: list[str]
    """Names of the methods that are marked, as they were."""
    letters: str
    """Ends of the names of the methods that must fail."""


def mask(text: str) -> str:
    """Return the text with blanks for comments, strings and characters; every offset and line stays."""
    return _TEXT.sub(lambda one: re.sub(r"[^\n]", " ", one[0]), text)


def without_comments(text: str) -> str:
    """Return the text with blanks for comments; every offset and line stays."""
    return _TEXT.sub(
        lambda one: re.sub(r"[^\n]", " ", one[0]) if one[0].startswith(("//", "/*")) else one[0], text
    )


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
            found.update({case.marked_at: case for case in _find_public(code, head.end())})
    if "junit" in inherited:
        for method in _OLD_METHOD.finditer(code):
            found.setdefault(method.start(1), Case(method[1], method.start(1) + len("test")))
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


def mark_files(
    texts: Mapping[str, str], code: Mapping[str, str], command: str, run: tuple[str, int, int]
) -> Iterator[MarkedFile]:
    """Yield the files of tests with marks before the names of their methods, and methods that must fail.

    A name that is called, or that a class takes over from another, stays as it is, in all files.

    Args:
        texts: files of tests and configuration, by their paths.
        code: not used.
        command: not used.
        run: the run's mark, number of its first file, whose methods are ``{mark}c_{number}_{letter}``, and a number
            that nobody can know.
    """
    del code, command
    mark, number, secret = run
    sources = {path: text for path, text in texts.items() if path.endswith(SUFFIXES)}
    bases = find_bases(sources.values())
    found = {path: find_cases(text, bases) for path, text in sources.items()}
    classes = {
        name.rpartition(".")[2]
        for path, text in sources.items()
        if found[path]
        for name in find_classes(text)
    }
    kept = {name for path, text in sources.items() for name in _unmarkable(text, found[path], classes)}
    for path, text in sources.items():
        framework, cases = find_framework(text, bases), found[path]
        if not framework or not cases:
            continue
        marked = [case for case in cases if case.name not in kept]
        bodies = _make_bodies(framework, text, secret)
        letters = "".join(chr(ord("a") + n) for n in range(len(bodies)))
        head = _find_head(mask(text), cases)
        if not head:
            continue
        controls = _make_controls(framework, path, text[:head], f"{mark}c_{number}", bodies)
        for case in reversed(marked):
            text = f"{text[: case.marked_at]}{mark}_{text[case.marked_at :]}"
        text = f"{text[:head]} {controls} {text[head:]}"
        yield MarkedFile(path, text, sorted({case.name for case in marked}), letters)
        number += 1


def _unmarkable(text: str, cases: list[Case], classes: Collection[str]) -> set[str]:
    """Return the names of test methods that a file tells in another way than by declaring them.

    Args:
        text: of the file.
        cases: its test methods.
        classes: names of all test classes.
    """
    code = mask(text)
    declared: dict[str, int] = {}
    for case in cases:
        declared[case.name] = declared.get(case.name, 0) + 1
    counts: dict[str, int] = {}
    for name in [name for names in _CALL.findall(code) for name in names if name]:
        counts[name] = counts.get(name, 0) + 1
    overridden = {
        case.name
        for case in cases
        if _OVERRIDE.search(
            code[max(code.rfind(end, 0, case.marked_at) for end in "{};") + 1 : case.marked_at]
        )
    }
    called = {name for name, count in counts.items() if count > declared.get(name, 0)}
    return overridden | called | {*_STRING.findall(text)} | _find_calls(code, classes)


def _find_calls(code: str, classes: Collection[str]) -> set[str]:
    """Return the names of the methods that a file calls by a test class, a new object of one, or a variable."""
    owners = set(classes)
    owners |= {name for kind, name in _VARIABLE.findall(code) if kind in classes}
    found = {name for owner, name in _OF_OWNER.findall(code) if owner in owners}
    return found | {name for owner, name in _OF_NEW.findall(code) if owner in owners}


def _make_bodies(framework: str, text: str, number: int) -> list[str]:
    found = list(_BODIES[framework])
    imports = _IMPORT.findall(mask(text))
    if framework == "spock":
        return [body.format(n=number) for body in found]
    for library, body in _LIBRARIES.items():
        if any(place.startswith(library) for place, _ in imports):
            found.append(body)
    for method, body in _SHORT.items():
        owners = {place for place, name in imports if name in (method, "*")}
        plain = {"org.junit.Assert", "org.junit.jupiter.api.Assertions", "org.testng.Assert", "kotlin.test"}
        fluent = {"org.assertj.core.api.Assertions", "com.google.common.truth.Truth"}
        if owners & (fluent if method == "assertThat" else plain):
            found.append(body)
    return [body.format(n=number) for body in found]


def _make_controls(framework: str, path: str, before: str, name: str, bodies: list[str]) -> str:
    """Return the methods that must fail, in one line."""
    annotation = {
        "org.junit": "@org.junit.Test",
        "org.junit.jupiter": "@org.junit.jupiter.api.Test",
        "org.testng": "@org.testng.annotations.Test",
        "kotlin.test": "@kotlin.test.Test",
    }.get(framework, "")
    in_interface = re.search(r"\binterface\s+\w+[^{}]*\{$", mask(before))
    lines = []
    for number, body in enumerate(bodies):
        title = f"{'test' if framework == 'junit' else ''}{name}_{chr(ord('a') + number)}"
        if framework == "spock":
            lines.append(f'def "{title}"() {{ expect: {body} }};')
        elif path.endswith(".kt"):
            lines.append(f"{annotation} fun {title}() {{ {body} }};")
        elif path.endswith(".scala"):
            lines.append(f"{annotation} def {title}(): Unit = {{ {body} }};")
        else:
            access = "default" if in_interface else "public"
            lines.append(f"{annotation} {access} void {title}() {{ {body}; }};")
    return " ".join(lines)


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
    around = [open_ones for open_ones in _find_open(code, [case.marked_at for case in cases]) if open_ones]
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
