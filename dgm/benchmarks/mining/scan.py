"""The first stage of mining: which steps of a history may become tasks, by paths and sizes, without running a test."""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from dgm.benchmarks.languages import Language, language_of
from dgm.benchmarks.mining.changes import divide_changes, read_code
from dgm.benchmarks.mining.diff_words import split_tokens
from dgm.benchmarks.mining.history import FileChange, History, Unit
from dgm.benchmarks.mining.paths import is_code_file, is_test_file
from dgm.domain import CommitId

MOST_LINES = 150
"""Maximum number of changed lines of code."""
MOST_ALL_LINES = 1_000
"""Maximum number of changed lines in all files; more are several changes at once, as a release brings them."""
MOST_CODE_FILES = 5
MOST_TEST_FILES = 8
_VERSION_TITLE = re.compile(
    r"(?i)^(?:release|version|bump(?:ed|ing)?(?: version)?|prepare|preparing)\b[ :]*v?\d+\.\d+|^v?\d+(?:\.\d+)+\S*$"
    r"|^(?:back to development|start (?:of )?version|post[- ]release|\[?pre-commit)"
)
_SYNC_TITLE = re.compile(
    r"(?i)^merge (?:remote-tracking )?(?:branch|tag) '?(?:(?:origin|upstream)/)?"
    r"(?:main|master|stable|develop|trunk|release[-/\w.]*|v?\d+[.\w]*)'?(?: of \S+)?(?: into \S+)?$"
)


@dataclass(frozen=True, slots=True)
class Left:
    """A unit that becomes no task, and why."""

    unit: Unit
    stage: str
    reason: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A unit that may become a task."""

    unit: Unit
    code: tuple[str, ...]
    """Changed files of code."""
    tests: tuple[str, ...]
    """Changed files of tests."""


def scan(
    history: History, units: Sequence[Unit], language: Language, tick: Callable[[], None] = lambda: None
) -> Iterator[Candidate | Left]:
    """Yield for each unit, in their order, whether it may become a task.

    Args:
        history: holds the units.
        units: the newest first.
        language: of the code and its tests.
        tick: is called for each unit.
    """
    for unit in units:
        found = _judge(divide_changes(history, unit) if language is Language.RUST else unit, language)
        if isinstance(found, Candidate) and not _changes_code(history, found, language):
            what = (
                "comments, docstrings or annotations" if language is Language.PYTHON else "comments or blanks"
            )
            found = Left(unit, "scan", f"the code changes in {what} only")
        tick()
        yield found


def _judge(unit: Unit, language: Language) -> Candidate | Left:
    code = [one for one in unit.changes if is_code_file(one.path) and language_of(one.path) is language]
    tests = [one for one in unit.changes if is_test_file(one.path) and language_of(one.path) is language]
    reason = _reason(unit, code, tests)
    if reason:
        return Left(unit, "scan", reason)
    return Candidate(unit, tuple(one.path for one in code), tuple(one.path for one in tests))


def _reason(unit: Unit, code: Collection[FileChange], tests: Collection[FileChange]) -> str:
    lines = sum(one.lines for one in code)
    checks = (
        (not unit.parent, "the first commit"),
        (bool(_SYNC_TITLE.match(unit.title)) and unit.merge, "a merge that keeps two branches alike"),
        (bool(_VERSION_TITLE.match(unit.title)), "a version of the project"),
        (not code and not tests, "changes neither code nor tests"),
        (not code, "changes no code"),
        (not tests, "changes no test"),
        (len(code) > MOST_CODE_FILES, f"changes more than {MOST_CODE_FILES} files of code"),
        (len(tests) > MOST_TEST_FILES, f"changes more than {MOST_TEST_FILES} files of tests"),
        (lines > MOST_LINES, f"changes more than {MOST_LINES} lines of code"),
        (lines < 1, "changes no line of code"),
        (
            sum(change.lines for change in unit.changes) > MOST_ALL_LINES,
            f"changes more than {MOST_ALL_LINES:,} lines in all",
        ),
        (not any(one.added > 0 for one in tests), "adds no line to a test"),
    )
    return next((reason for wrong, reason in checks if wrong), "")


def _changes_code(history: History, found: Candidate, language: Language) -> bool:
    """Return whether any file differs without what does not run: comments, docstrings, annotations."""
    unit = found.unit

    def read(commit: CommitId, path: str) -> Sequence[str]:
        source = history.file(commit, path)
        if language is Language.PYTHON:
            return meaning(source)
        return code_words(read_code(source) if language is Language.RUST else source, language)

    return any(read(unit.parent, path) != read(unit.commit, path) for path in found.code)


def meaning(source: bytes | None) -> str:
    """Return a Python file as a syntax tree without docstrings and annotations; its text if it has no such tree."""
    if source is None:
        return ""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return source.decode("latin-1")
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(value=None)
    return ast.dump(tree)


def code_words(source: bytes | None, language: Language) -> Sequence[str]:
    """Return the words of a file's code, without comments and blanks."""
    if source is None:
        return ()
    return [
        text for kind, text in split_tokens(language, source.decode("utf-8", "replace")) if kind != "comment"
    ]
