"""Steps that change code and tests in one file: Rust's modules of tests stand beside what they test."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from dgm.archive.repository import patch
from dgm.benchmarks.languages import LANGUAGES
from dgm.benchmarks.mining.history import FileChange, History, Unit
from dgm.benchmarks.mining.languages import Language, is_code_file, language_of
from dgm.benchmarks.mining.validation import Change, take_apart
from dgm.benchmarks.sandbox_runner import RUST_TESTS
from dgm.domain import Entry, Snapshot

MOST_FILES = 12
"""Maximum number of changed files of code that are read; a step with more is no candidate."""


def divide_changes(history: History, unit: Unit) -> Unit:
    """Return a step whose changes of Rust files are divided: those of the code, and those of its tests.

    A change of tests has the path of the file with ``tests/`` before it.
    """
    mixed = [one for one in unit.changes if _is_mixed(one.path)]
    if not unit.parent or len(mixed) > MOST_FILES:
        return unit
    changes: list[FileChange] = []
    for one in unit.changes:
        changes += _divide(history, unit, one) if one in mixed else [one]
    return replace(unit, changes=tuple(changes))


def read_code(source: bytes | None) -> bytes | None:
    """Return a Rust file without its modules of tests."""
    return None if source is None else split_parts(_text(source))[0].encode("latin-1")


def take_apart_rust(
    before: Snapshot,
    after: Snapshot,
    modules: Sequence[str],
    restored: Sequence[str] = LANGUAGES[Language.RUST].restored,
) -> Change:
    """Divide a step into its fix and its tests, those in files of the code among them.

    Raises:
        ValueError: a file that the fix adds has the tests.
    """
    tested: dict[str, Entry] = {}
    parts: dict[str, Entry] = {}
    fixed = dict(after)
    for name in sorted(after):
        if not _is_mixed(name) or before.get(name) == after[name]:
            continue
        new = split_parts(_text(after[name].data))[1]
        old = split_parts(_text(before[name].data))[1] if name in before else ""
        if new == old or name not in before:
            continue
        parts[name] = Entry(new.encode("latin-1"))
        tested[name] = _laid(before[name], new)
        fixed[name] = _laid(after[name], old)
    change = take_apart(before, fixed, modules, restored)
    return replace(
        change,
        hidden={**change.hidden, **parts},
        parts=tuple(parts),
        test_patch=change.test_patch + patch(before, {**before, **tested}),
    )


def _laid(entry: Entry, tests: str) -> Entry:
    return replace(entry, data=lay_over(_text(entry.data), tests).encode("latin-1"))


def split_parts(text: str) -> tuple[str, str]:
    """Return the code of a Rust file, and its modules of tests."""
    return RUST_TESTS.sub("", text), "\n\n".join(part[0].rstrip("\n") for part in RUST_TESTS.finditer(text))


def lay_over(text: str, tests: str) -> str:
    """Return a Rust file with other modules of tests, at its end."""
    code = RUST_TESTS.sub("", text).rstrip()
    return f"{code}\n\n{tests}\n" if tests else f"{code}\n"


def _is_mixed(path: str) -> bool:
    return language_of(path) is Language.RUST and is_code_file(path)


def _divide(history: History, unit: Unit, one: FileChange) -> Iterator[FileChange]:
    before, after = history.file(unit.parent, one.path), history.file(unit.commit, one.path)
    old, new = split_parts(_text(before or b"")), split_parts(_text(after or b""))
    for path, first, second in zip((one.path, f"tests/{one.path}"), old, new, strict=True):
        if first != second:
            rows = list(difflib.unified_diff(first.split("\n"), second.split("\n"), n=0, lineterm=""))[2:]
            added, removed = (sum(row.startswith(mark) for row in rows) for mark in "+-")
            yield FileChange(path, added, removed)


def _text(data: bytes) -> str:
    return data.decode("latin-1")
