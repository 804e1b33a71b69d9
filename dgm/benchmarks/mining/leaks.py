"""Check by program that the statement of a mined task tells enough, and no part of the fix.

It must not tell the fix (lines of it, names that only it adds), nor keys to it (numbers of issues, ids of commits), nor
the hidden tests' names. It must tell every name and text that the tests need and that nobody could know.
"""

import builtins
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dgm.benchmarks.languages import Language, language_of
from dgm.benchmarks.mining.diff_words import Side, read_side

SHORTEST_LINE, SHORTEST_SPAN = 10, 8
"""Minimum characters, without blanks, of a line or a part of one that tells a fix."""
SHORTEST_LITERAL = 3
SHORTEST_TITLE = 8
"""Minimum characters of a test's own name, where nothing else shows that it is one."""
SHOWN = 80
"""Maximum characters of what is quoted in a message."""
_CODE = re.compile(r"[=(\[{<>|&+*/%]")
_SPAN = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)|`([^`\n]+)`", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w&#/.])#[1-9]\d{0,5}\b(?![-\w])")
_NUMBER_IN_WORDS = re.compile(
    r"\b(?:gh|bpo|bug|issue|ticket|pr|mr|pull request|merge request)[- ]?([1-9]\d{0,5})\b", re.IGNORECASE
)
_LINK = re.compile(r"\bhttps?://\S+/(?:issues?|pulls?|merge_requests|commits?|tickets?|browse)/\S+")
_TRACKER = re.compile(
    r"\b(?!(?:UTF|SHA|ISO|RFC|PEP|MD|BASE|CP|KOI|EUC|IPV|HTTP|TLS|UTC|GMT|ES|X)-)[A-Z][A-Z\d]{1,9}-[1-9]\d{0,5}\b"
)
_COMMIT = re.compile(r"(?<![-\w#])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,40}(?![-\w])")
_DIFF = re.compile(r"^(?:diff --git |@@ -\d|\+\+\+ b/|--- a/)", re.M)
_HIDDEN = re.compile(r"\b(?:hidden tests?|fail[_ ]to[_ ]pass|pass[_ ]to[_ ]pass)\b", re.I)
_TEST_WORD = re.compile(r"\b(?:test_\w*[a-zA-Z]\w*|Test[A-Z]\w*|\w+_test\.\w+)(?:\.\w+)?")
_TEST_DEFINED = re.compile(r"^\+.*?\b(?:def|class|func?|fn|void)\s+(\w+)|^\+\+\+ .*?([^/\s]+)$", re.M)
"""The name that an added line defines, or the name of a changed file."""
_SHAPED = re.compile(r"(?=.*[^\W\d])(?:.*[a-z\d][A-Z].*|[^\W_].*_.*|_.+|.*\d.*)")
"""Names that are no words of a sentence: with an underline, a capital inside, or a digit."""
_BUILTINS = (str, bytes, list, dict, set, tuple, int, float, BaseException, type, object, property)
_KNOWN = frozenset({*dir(builtins), *sys.stdlib_module_names}.union(*map(dir, _BUILTINS)))
"""Names that everybody knows who knows Python."""

_JVM_WORDS = """
AbstractMethodError Appendable ArithmeticException ArrayIndexOutOfBoundsException ArrayStoreException
AssertionError AutoCloseable Boolean Byte CharSequence Character Class ClassCastException ClassLoader
ClassNotFoundException CloneNotSupportedException Cloneable Comparable Deprecated Double Enum Error Exception
ExceptionInInitializerError Float FunctionalInterface IllegalAccessException IllegalArgumentException
IllegalMonitorStateException IllegalStateException IndexOutOfBoundsException InheritableThreadLocal
InstantiationException Integer InternalError InterruptedException Iterable LinkageError Long Math Module
NegativeArraySizeException NoClassDefFoundError NoSuchFieldException NoSuchMethodException
NullPointerException Number NumberFormatException Object OutOfMemoryError Override Package Process
ProcessBuilder ProcessHandle Readable Record ReflectiveOperationException Runnable Runtime RuntimeException
SafeVarargs SecurityException Short StackOverflowError StackTraceElement StackWalker StrictMath String
StringBuffer StringBuilder StringIndexOutOfBoundsException SuppressWarnings System Thread ThreadDeath
ThreadGroup ThreadLocal Throwable UnsatisfiedLinkError UnsupportedOperationException VerifyError
VirtualMachineError Void close compareTo equals getClass getMessage hashCode iterator length toString valueOf
"""
JVM_ROOTS = frozenset({"java", "javax", "kotlin", "scala", "groovy"})
"""First names of the packages of the libraries, from which files import."""
JVM_NAMES = frozenset(_JVM_WORDS.split()) | JVM_ROOTS
"""Names of ``java.lang``, which no file imports, and of methods that everything there has."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts of a mined task. Only ``fix_diff`` must never be shown to who writes the statement."""

    message: str
    """The messages of the commit or of the merged branch."""
    test_diff: str
    """The changes of test files, as git writes them."""
    fix_diff: str
    """The changes of the code, as git writes them."""
    failure: str
    """Output of the failing tests on the old code."""
    fail_to_pass: tuple[str, ...]
    """Ids of the tests that the fix makes pass."""
    old_names: frozenset[str]
    """All names in the files of the old tree."""
    failures: Sequence[tuple[str, str]] = ()
    """Id and output of each failing test that prints any; ``failure`` holds some of them."""
    test_files: Mapping[str, str] = field(default_factory=dict)
    """Texts of the test files with the changes, by their paths."""

    issue: str = ""
    """Text of the issue that the change closes, if it is known; its first line is the title."""
    subjects: Sequence[frozenset[str]] = ()
    """Names that the changed files define, and those that the project does."""

    @property
    def outputs(self) -> str:
        """All that the failing tests print."""
        return "\n".join((self.failure, *(text for _, text in self.failures)))


def find_leaks(statement: str, evidence: Evidence) -> tuple[str, ...]:
    """Return what the statement tells of the fix, of its tests or of its place in a tracker; one plain line each."""
    return tuple(
        dict.fromkeys((*_keys(statement, evidence), *_tests(statement, evidence), *_fix(statement, evidence)))
    )


def untold_names(statement: str, evidence: Evidence) -> tuple[str, ...]:
    """Return the names, and the texts in quotes, that the tests need and neither the old tree nor the statement tells.

    A test needs a name that it imports, calls, takes as an attribute or passes as a keyword, and that the fix adds. It
    needs a text that stands in the code of both. Names of Python and of its library are known.
    """
    tests, fix = read_side(evidence.test_diff, "+"), read_side(evidence.fix_diff, "+")
    new = (tests.used & fix.names) - evidence.old_names - _known_names(evidence, tests)
    names = [name for name in sorted(new) if name.strip("_") and not _has_word(statement, name)]
    old = _squeeze(_old_text(evidence.fix_diff))
    texts = [
        text
        for text in sorted(tests.literals & fix.literals)
        if len(text) >= SHORTEST_LITERAL
        and re.search(r"[^\W\d_]", text)
        and text == text.strip()
        and _squeeze(text) not in old
        and _squeeze(text) not in _squeeze(statement)
        and not (_is_word(text) and text in evidence.old_names)
    ]
    return (*names, *(repr(text) for text in texts if text not in names))


def _keys(statement: str, evidence: Evidence) -> Iterator[str]:
    """Yield what leads to the fix in a tracker or a history."""
    data = _data_of_tests(evidence)
    known = f"{evidence.message}\n{evidence.test_diff}"
    keys = [found[0] for pattern in (_NUMBER, _LINK, _COMMIT) for found in pattern.finditer(statement)]
    keys += [found[0] for found in _NUMBER_IN_WORDS.finditer(statement) if _has_word(known, found[1])]
    keys += [found[0] for found in _TRACKER.finditer(statement) if found[0] in known]
    for key in keys:
        if key not in data:
            yield f"names an issue or a commit: {_quote(key)}"
    if any(row[0] not in data for row in _DIFF.finditer(statement)):
        yield "holds a part of a diff"


def _data_of_tests(evidence: Evidence) -> str:
    """Return what the tests work on: their output, and the texts in their code."""
    texts = [re.sub(r"^\s*(?:#|//|\*).*$", "", text, flags=re.M) for text in evidence.test_files.values()]
    return "\n".join((evidence.outputs, *sorted(read_side(evidence.test_diff, "+").literals), *texts))


def _tests(statement: str, evidence: Evidence) -> Iterator[str]:
    """Yield the names of tests, their classes and files."""
    if found := _HIDDEN.search(statement):
        yield f"speaks of the grading: {_quote(found[0])}"
    names = {part for test in evidence.fail_to_pass for part in name_parts(test)} - evidence.old_names
    for name in sorted(names, key=lambda each: (-len(each), each)):
        if _has_word(statement, name):
            yield f"names a test: {_quote(name)}"
            return
    # A file that a test writes may have such a name, too: only what the tests define counts, and their own files.
    added = {name for pair in _TEST_DEFINED.findall(evidence.test_diff) for name in pair if name}
    for found in _TEST_WORD.finditer(statement):
        if {found[0], found[0].partition(".")[0]} & added and found[0] not in evidence.old_names:
            yield f"names a test: {_quote(found[0])}"


def name_parts(test: str) -> Iterator[str]:
    """Yield the parts of a test's id by which it could be found: file, class, function; or its title in words."""
    whole = re.sub(r"\[.*\]$", "", test, flags=re.DOTALL)
    if language_of(test.partition("::")[0]) is Language.JVM:
        whole = re.sub(r"[({].*$", "", whole, flags=re.DOTALL)
    if " " in whole:
        # Of a title only a long one is no ordinary sentence of a statement.
        if len(whole.split()) > 2 and len(whole) >= 15:
            yield whole
        whole = whole.split(" ", 1)[0] if re.match(r"\S+[./:]\S+ ", whole) else ""
    parts = re.split(r"::|/(?=[A-Z])", whole)
    last = re.split(r"[.:/]", whole)[-1]
    # In JavaScript a title of one word is what is tested.
    is_title = language_of(test.partition("::")[0]) is Language.JAVASCRIPT
    if len(last) >= SHORTEST_TITLE and _SHAPED.fullmatch(last) and not is_title:
        yield last
    for part in parts:
        for word in (part, *part.split("/"), *part.split(".")):
            if _TEST_WORD.fullmatch(word) or re.fullmatch(r"\S+[._-](?:test|spec)\.\w+|\w+Tests?", word):
                yield word


def _fix(statement: str, evidence: Evidence) -> Iterator[str]:
    """Yield lines of the fix, parts of them, and names that only the fix adds."""
    side = read_side(evidence.fix_diff, "+")
    tests = (evidence.test_diff, evidence.outputs, *evidence.test_files.values())
    elsewhere = _squeeze("\n".join((*tests, _old_text(evidence.fix_diff))))
    lines = {_squeeze(line): line for line in side.lines}
    told = _squeeze(statement)
    new = {short: line for short, line in lines.items() if short not in elsewhere and _CODE.search(short)}
    for short, line in new.items():
        if len(short) >= SHORTEST_LINE and short in told:
            yield f"tells a line of the fix: {_quote(line)}"
    for span in _code_spans(statement):
        short = _squeeze(span)
        new_code = len(short) >= SHORTEST_SPAN and _CODE.search(short) and short not in elsewhere
        if new_code and any(short in line for line in new):
            yield f"tells a part of the fix: {_quote(span)}"
    yield from _names_of_fix(statement, side, evidence)


def _names_of_fix(statement: str, fix: Side, evidence: Evidence) -> Iterator[str]:
    tests = read_side(evidence.test_diff, "+")
    needed = tests.names | {word for text in tests.literals for word in re.findall(r"\w+", text)}
    shown = "\n".join(_code_spans(statement))
    for name in sorted(fix.names - evidence.old_names - needed - _known_names(evidence, fix)):
        if len(name) < 3 or _has_word(evidence.outputs, name):
            continue
        if _has_word(statement if _SHAPED.fullmatch(name) else shown, name):
            yield f"names what only the fix adds: {_quote(name)}"


def _known_names(evidence: Evidence, side: Side) -> frozenset[str]:
    """Return the names that everybody knows: of the language, and those that a side takes from its library."""
    of_jvm = language_of(next(iter(evidence.fail_to_pass), "").partition("::")[0]) is Language.JVM
    roots, known = (JVM_ROOTS, JVM_NAMES) if of_jvm else (sys.stdlib_module_names, _KNOWN)
    return known.union(word.text for word in side.words if word.root != word.text and word.root in roots)


def _old_text(diff: str) -> str:
    return "\n".join((*read_side(diff, "-").lines, *read_side(diff, " ").lines))


def _code_spans(statement: str) -> Iterator[str]:
    for block, span in _SPAN.findall(statement):
        yield from (line.strip().removeprefix(">>> ") for line in (block or span).splitlines())


def _squeeze(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _has_word(text: str, word: str) -> bool:
    return bool(re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text))


def _is_word(text: str) -> bool:
    return bool(re.fullmatch(r"\w+", text))


def _quote(text: str) -> str:
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 1] + "…")
