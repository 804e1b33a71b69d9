"""Files of a patch that would take the place of what tests on the JVM stand on: a framework, or a name that they use.

Standard library only (Python >= 3.9). dgm does not import it but puts it into the sandbox as a file, beside
``jvm_controls.py``, whose parts it uses.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dgm.benchmarks import jvm_controls
else:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import jvm_controls

FRAMEWORKS = (
    "org.junit", "junit", "org.testng", "org.hamcrest", "org.assertj", "com.google.common.truth", "org.mockito",
    "kotlin", "org.spockframework", "spock", "org.scalatest", "org.opentest4j", "org.apiguardian",
    "org.apache.maven", "groovy", "org.gradle", "worker.org.gradle", "scala", "munit", "org.specs2",
    "io.kotest",
)  # fmt: skip
"""Packages of the tools and libraries that tests stand on: classes of the code come before theirs."""
_PACKAGE = re.compile(r"\bpackage\s+(\w+(?:\s*\.\s*\w+)*)")
_CLASS = re.compile(r"\b(?:class|interface|object|record|enum|trait|typealias)\s+(\w+)")
_FUNCTION = re.compile(r"\bfun\s+(?:<[^<>]*>\s*)?(\w+)\s*\(")
_EXTENSION = re.compile(r"\bfun\s+(?:<[^<>]*>\s*)?[\w.<>?*, ]+\.((?:assert|expect|should)\w*)\s*\(")
_METHOD = re.compile(r"(\w+|[>\]?])\s+(\w+)\s*\(")
_NO_TYPES = frozenset({"new", "return", "else", "throw", "assert", "case", "yield", "in", "is"})
_SUPERTYPES = re.compile(
    r"\b(?:class|interface|object|record|enum)\s+\w+[^{};]*?(?:\bextends\b|\bimplements\b|:)([^{};]*)"
)
_ASSERTION = re.compile(r"assert\w*|expect\w*|fail\w*")
_STATIC = re.compile(r"^[ \t]*import\s+static\s+[\w.]+\.(\w+)", re.M)
_IMPORTED = re.compile(r"^[ \t]*import\b.*?(\w+)[ \t]*;?[ \t]*\r?$", re.M)
_IMPORT = re.compile(r"^[ \t]*import\b[^\n;]*", re.M)
_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u+([0-9a-fA-F]{4})")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class _Declared(NamedTuple):
    """The names that a file of the code declares."""

    packages: set[str]
    """All that it could be in."""
    top: set[str]
    """Classes, and functions outside of them."""
    members: list[str]
    """Classes and methods, one entry for each declaration."""
    supertypes: set[str]
    """Words of what its classes inherit from."""


def find_replaced(start: Mapping[str, str], patched: Mapping[str, str], tests: Mapping[str, str]) -> str:
    """Return which file of a patch takes the place of something that tests stand on; empty if none does.

    Args:
        start: files of the code without the patch, by their paths.
        patched: the same with it.
        tests: files of tests and configuration.
    """
    changed = {path: text for path, text in patched.items() if start.get(path) != text}
    shadows = {path: shadow for path, text in changed.items() if (shadow := find_shadow(path, text))}
    if shadows:
        known = {find_shadow(path, text) for path, text in start.items()}
        for path, shadow in shadows.items():
            if shadow not in known:
                return f"{path} takes the place of {shadow}"
    sources = {path: text for path, text in changed.items() if path.endswith(jvm_controls.SUFFIXES)}
    return _find_captured(start, sources, tests) if sources else ""


def find_shadow(path: str, text: str) -> str:
    """Return the framework whose classes a file of the code would replace; empty if it is of none."""
    place = path.replace("/", ".")
    for name in FRAMEWORKS:
        if "." in name and f".{name}." in f".{place}.":
            return name
    packages = _find_packages(path, text) if path.endswith(jvm_controls.SUFFIXES) else set()
    return next(
        (name for name in FRAMEWORKS if any(f"{package}.".startswith(f"{name}.") for package in packages)), ""
    )


def _find_captured(start: Mapping[str, str], changed: Mapping[str, str], tests: Mapping[str, str]) -> str:
    """Return which file brings a class or function that a test would use from now on in the place of another."""
    codes = {
        path: jvm_controls.mask(text) for path, text in tests.items() if path.endswith(jvm_controls.SUFFIXES)
    }
    new = {path: _read_declared(path, text) for path, text in changed.items()}
    statics = {name for code in codes.values() for name in _STATIC.findall(code)}
    fresh = {
        path: _find_fresh(one, _read_declared(path, start.get(path, "")), statics)
        for path, one in new.items()
    }
    called = any(names - new[path].top for path, names in fresh.items())
    names = {name for each in fresh.values() for name in each}
    # To read all of the code takes seconds where there is much.
    old = {
        path: _read_declared(path, text)
        for path, text in start.items()
        if path in changed or called or any(name in text for name in names)
    }
    packages = {path: jvm_controls.find_package(tests[path]) for path in codes}
    known = {(package, name) for one in old.values() for package in one.packages for name in one.top}
    known |= {(packages[path], name) for path, code in codes.items() for name in _CLASS.findall(code)}
    inheriting, inherited = _find_inherited(codes, {**old, **new})
    for test, code in codes.items():
        body, imports = _IMPORT.sub("", code), set(_STATIC.findall(code))
        imported = set(_IMPORTED.findall(code))
        for path, one in new.items():
            captured = {
                name
                for name in one.top - imported
                if packages[test] in one.packages and (packages[test], name) not in known
            }
            if test in inheriting and path in inherited:
                before = old.get(path, _Declared(set(), set(), [], set()))
                captured |= _find_fresh(one._replace(top=set()), before, imports)
            if used := [name for name in captured if _uses(body, name)]:
                return f"{path} gives {min(used)} in {test} another meaning"
    return ""


def _find_fresh(one: _Declared, before: _Declared, imports: set[str]) -> set[str]:
    """Return the names outside of braces that a file has now, and the methods that tests could call by their names.

    Args:
        one: the file as it is.
        before: the file as it was.
        imports: names that tests import from classes.
    """
    more = {name for name in one.members if one.members.count(name) > before.members.count(name)}
    called = {name for name in more if name in imports or _ASSERTION.fullmatch(name)}
    moved = one.top if one.packages != before.packages else one.top - before.top
    return called | moved


def _find_inherited(codes: Mapping[str, str], files: Mapping[str, _Declared]) -> tuple[set[str], set[str]]:
    """Return the files of tests that inherit from classes of the code, and the files of those classes.

    Args:
        codes: files of tests.
        files: all of the code.
    """
    supers = {path: _find_supertypes(code) for path, code in codes.items()}
    classes = {name for words in supers.values() for name in words}
    found: set[str] = set()
    while fresh := {path for path, one in files.items() if path not in found and classes & set(one.members)}:
        found |= fresh
        classes |= {name for path in fresh for name in files[path].supertypes}
    known = {name for path in found for name in files[path].members}
    inheriting = set()
    while more := {path for path, words in supers.items() if path not in inheriting and words & known}:
        inheriting |= more
        known |= {name for path in more for name in _CLASS.findall(codes[path])}
    return inheriting, found


def _find_supertypes(code: str) -> set[str]:
    return {word for found in _SUPERTYPES.findall(code) for word in re.findall(r"\w+", found)}


def _uses(code: str, name: str) -> bool:
    """Return whether a text has a name that no other stands before with a dot, and does not declare it."""
    if re.search(rf"\b(?:class|interface|object|record|enum|fun|void)\s+{name}\b", code):
        return False
    if re.match(r"assert|expect|should", name):
        return bool(re.search(rf"\b{name}\b", code))
    # Variables have names like functions.
    behind = r"\s*(?:<[^<>]*>\s*)?[({]" if name[0].islower() else r"\b"
    return bool(re.search(rf"(?<![\w.$]){name}{behind}", code))


def _read_declared(path: str, text: str) -> _Declared:
    if not path.endswith(jvm_controls.SUFFIXES):
        return _Declared(set(), set(), [], set())
    code = next(_readings(path, text))
    methods = [name for before, name in _METHOD.findall(code) if before not in _NO_TYPES]
    return _Declared(
        _find_packages(path, text) or {""},
        _tops(code) | set(_EXTENSION.findall(code)),
        [*_CLASS.findall(code), *methods],
        _find_supertypes(code),
    )


def _tops(code: str) -> set[str]:
    """Return the classes and functions that stand outside of braces."""
    found, depth = [], 0
    for part in re.split(r"([{}])", code):
        depth += (part == "{") - (part == "}")
        if depth <= 0:
            found.append(part)
    outside = ";".join(found)
    return {*_CLASS.findall(outside), *_FUNCTION.findall(outside)}


def _find_packages(path: str, text: str) -> set[str]:
    return {
        re.sub(r"\s", "", package) for code in _readings(path, text) for package in _PACKAGE.findall(code)
    }


def _readings(path: str, text: str) -> Iterator[str]:
    """Yield the code of a file as its compiler may read it; of Kotlin and others, whose comments nest, in each way."""
    # Java's compiler passes over such characters within names, and reads escapes before all else.
    if not text.isascii():
        text = "".join(sign for sign in text if unicodedata.category(sign) != "Cf")
    text = re.sub(r"[\0-\x08\x0e-\x1b\x7f-\x9f]", "", text)
    if path.endswith(".java"):
        text = _ESCAPE.sub(lambda found: found[1] + chr(int(found[2], 16)), text)
        yield jvm_controls.mask(text)
        return
    yield jvm_controls.mask(re.sub(r"`(\w+)`", r"\1", text))
    plain = text.replace("`", "")
    yield plain
    yield _COMMENT.sub(" ", plain)
