"""A step of a history, divided into its fix and its tests, and its files as the workspace of a task.

Rust's modules of tests stand in the files of the code; there the two parts of one file are divided, too.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from dgm.archive.repository import patch
from dgm.benchmarks.environments import TARGET
from dgm.benchmarks.languages import LANGUAGES, Language, language_of
from dgm.benchmarks.mining.history import FileChange, History, Unit
from dgm.benchmarks.mining.paths import is_code_file, is_test_material
from dgm.benchmarks.sandbox_runner import RUST_TESTS, matches
from dgm.domain import Entry, Snapshot

MAX_MIXED_FILES = 12
"""Maximum number of changed Rust files that are divided; a step with more is no candidate."""
LOCKS = ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb")
_DOCUMENT_FOLDERS = ("docs", "doc", ".github", "changelog.d", "changes", "news")
_CARGO_CONFIGURATION = (".cargo/config.toml", ".cargo/config")
_CRATES = f"""\
[source.crates-io]
replace-with = "dgm"

[source.dgm]
directory = "{TARGET}/vendor"
"""
_OFFLINE = "\n[net]\noffline = true\n"
_MAVEN_OPTIONS = f"-o\n-Dmaven.repo.local={TARGET}/m2\n"


@dataclass(frozen=True, slots=True)
class Change:
    """A step of the history, taken apart for a task."""

    workspace: Snapshot
    """The files before it."""
    fix: bytes
    """Its change of everything but tests and configuration."""
    hidden: Snapshot
    """Test and configuration files that it adds or changes."""
    modules: tuple[str, ...]
    """Files of code that the fix changes."""
    test_patch: bytes
    """Its change of tests; material for the statement."""
    deleted: tuple[str, ...] = ()
    """Test and configuration files that it removes."""
    restored: tuple[str, ...] = ()
    """Patterns of tests and configuration."""
    parts: tuple[str, ...] = ()
    """Hidden files that hold only the modules of tests of a file of the code."""


def read_change(history: History, unit: Unit, code: Sequence[str]) -> Change:
    """Return a step, taken apart; ``code`` are the files of code that it changes."""
    language = language_of(code[0])
    assert language is not None
    before = prepare_workspace(language, history.files(unit.parent))
    after = prepare_workspace(language, history.files(unit.commit))
    divide = take_apart_rust if language is Language.RUST else take_apart
    return divide(before, after, code, restored_patterns(language, before))


def restored_patterns(language: Language, files: Snapshot) -> tuple[str, ...]:
    """Return patterns for the tests and the configuration of a workspace."""
    top = language is Language.PYTHON and any(name.startswith("testing/") for name in files)
    return (*LANGUAGES[language].restored, *(["testing/*"] if top else []))


def prepare_workspace(language: Language, files: Snapshot) -> Snapshot:
    """Return a commit's files as a workspace, whose tools find the packages of its environment."""
    match language:
        case Language.JAVASCRIPT:
            # Tools keep their caches here; the packages are in a folder above, which is read-only.
            return {**files, "node_modules/.keep": Entry(b"Packages are in /node_modules.\n")}
        case Language.RUST:
            name = next((each for each in _CARGO_CONFIGURATION if each in files), _CARGO_CONFIGURATION[0])
            text = _text(files[name].data) if name in files else ""
            if "[source" in text:
                return files
            more = _CRATES + ("" if "[net]" in text else _OFFLINE)
            return {**files, name: Entry(f"{text.rstrip()}\n{more}".lstrip().encode("latin-1"))}
        case Language.JVM if "pom.xml" in files:
            options = files.get(".mvn/maven.config", Entry(b"")).data.rstrip()
            return {
                **files,
                ".mvn/maven.config": Entry(b"\n".join(filter(None, [options, _MAVEN_OPTIONS.encode()]))),
            }
        case _:
            return files


def take_apart(before: Snapshot, after: Snapshot, modules: Sequence[str], restored: Sequence[str]) -> Change:
    """Divide a step into its fix and its tests.

    Args:
        before: the files without it.
        after: the files with it.
        modules: files of code that it changes.
        restored: patterns of tests and configuration.
    """
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    tests = {name for name in changed if matches(name, restored) or is_test_material(name)}
    unmatched = tuple(sorted(name for name in tests if not matches(name, restored) and name in after))
    fixed, tested = dict(before), dict(before)
    for name in changed:
        if name in tests or not _is_document(name):
            side = tested if name in tests else fixed
            side.pop(name, None)
            side |= {name: after[name]} if name in after else {}
    return Change(
        workspace=before,
        fix=patch(before, fixed),
        hidden={name: after[name] for name in sorted(tests) if name in after},
        deleted=tuple(sorted(name for name in tests if name not in after)),
        modules=tuple(modules),
        restored=(*restored, *unmatched),
        test_patch=patch(before, tested),
    )


def _is_document(name: str) -> bool:
    """Return whether a file tells people of a change, or locks versions: it is no part of the fix."""
    path = PurePosixPath(name)
    is_text = path.suffix.lower() in (".md", ".rst", ".txt", ".adoc")
    return (
        path.name in LOCKS or path.parts[0].lower() in _DOCUMENT_FOLDERS or (len(path.parts) == 1 and is_text)
    )


def take_apart_rust(
    before: Snapshot, after: Snapshot, modules: Sequence[str], restored: Sequence[str]
) -> Change:
    """Divide a step into its fix and its tests, those in files of the code among them."""
    tested: dict[str, Entry] = {}
    parts: dict[str, Entry] = {}
    fixed = dict(after)
    for name in sorted(after):
        if not _is_mixed(name) or name not in before or before[name] == after[name]:
            continue
        old, new = (split_parts(_text(files[name].data))[1] for files in (before, after))
        if new != old:
            parts[name] = Entry(new.encode("latin-1"))
            tested[name] = _with_tests_of(before[name], after[name])
            fixed[name] = _with_tests_of(after[name], before[name])
    change = take_apart(before, fixed, modules, restored)
    return replace(
        change,
        hidden={**change.hidden, **parts},
        parts=tuple(parts),
        test_patch=change.test_patch + patch(before, {**before, **tested}),
    )


def divide_changes(history: History, unit: Unit) -> Unit:
    """Return a step whose changes of Rust files are divided: those of the code, and those of its tests.

    A change of tests has the path of the file with ``tests/`` before it.
    """
    mixed = [change for change in unit.changes if _is_mixed(change.path)]
    if not unit.parent or len(mixed) > MAX_MIXED_FILES:
        return unit
    changes: list[FileChange] = []
    for change in unit.changes:
        changes += _divide(history, unit, change.path) if change in mixed else [change]
    return replace(unit, changes=tuple(changes))


def _divide(history: History, unit: Unit, path: str) -> Iterator[FileChange]:
    old, new = (split_parts(_text(history.file(each, path) or b"")) for each in (unit.parent, unit.commit))
    for name, first, second in zip((path, f"tests/{path}"), old, new, strict=True):
        if first != second:
            rows = list(difflib.unified_diff(first.split("\n"), second.split("\n"), n=0, lineterm=""))[2:]
            yield FileChange(name, *(sum(row.startswith(mark) for row in rows) for mark in "+-"))


def read_code(source: bytes | None) -> bytes | None:
    """Return a Rust file without its modules of tests."""
    return None if source is None else split_parts(_text(source))[0].encode("latin-1")


def split_parts(text: str) -> tuple[str, str]:
    """Return the code of a Rust file, and its modules of tests."""
    return RUST_TESTS.sub("", text), "\n\n".join(part[0].rstrip("\n") for part in RUST_TESTS.finditer(text))


def _with_tests_of(entry: Entry, other: Entry) -> Entry:
    """Return a Rust file with the modules of tests of another: in their places, or at its end."""
    text, modules = _text(entry.data), [match[0] for match in RUST_TESTS.finditer(_text(other.data))]
    if len(modules) == len([*RUST_TESTS.finditer(text)]):
        waiting = iter(modules)
        text = RUST_TESTS.sub(lambda _: next(waiting), text)
    else:
        code = RUST_TESTS.sub("", text).rstrip()
        text = "\n\n".join([code, *(module.rstrip("\n") for module in modules)]) + "\n"
    return replace(entry, data=text.encode("latin-1"))


def _is_mixed(path: str) -> bool:
    return language_of(path) is Language.RUST and is_code_file(path)


def _text(data: bytes) -> str:
    return data.decode("latin-1")
