"""Find the tests that tell a change: run them with the fix and without it, twice each, in dgm's own sandboxes."""

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from dgm.archive.repository import patch
from dgm.benchmarks.grade import Exam, Survey, TestRun
from dgm.benchmarks.languages import LANGUAGES
from dgm.benchmarks.mining.languages import Language, is_test_file, is_test_material, language_of
from dgm.benchmarks.results import is_restored
from dgm.domain import Snapshot

FAIL_MOST = 20
"""Maximum number of tests that a fix mends."""
PASS_MOST = 50
"""Maximum number of tests that must go on passing."""
NEAR_FILES = 4
"""Number of further test files that run, those nearest to the change."""
TIMES = 2
LOCKS = ("package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lockb")
BUILD = "(build)"
"""Name under which a build that fails is told."""
_UNSTABLE = re.compile(r"0x[0-9a-fA-F]{6,}|\bat 0x|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|<object|<function|\d{10,}")
_LONGEST_NAME = 400
_TEST_MARK = re.compile(r"^test_|_test$|[.-](?:test|spec)$|(?<=[a-z\d])(?:Tests?|TestCase|IT|Spec|Suite)$")
"""The part of a test file's name that says that it is one."""

Run = Callable[[Exam, bytes, Survey], Awaitable[TestRun]]
"""Runs a survey on a patched workspace."""


@dataclass(frozen=True, slots=True)
class Change:
    """A step of the history, taken apart for a task."""

    workspace: Snapshot
    """The files before it."""
    fix: bytes
    """Its change of everything but tests and configuration."""
    hidden: Snapshot
    """Test and configuration files that it adds or changes."""
    deleted: tuple[str, ...]
    """Test and configuration files that it removes."""
    modules: tuple[str, ...]
    """Files of code that the fix changes."""
    restored: tuple[str, ...]
    """Patterns of tests and configuration."""
    test_patch: bytes
    """Its change of tests; material for the statement."""
    parts: tuple[str, ...] = ()
    """Hidden files that hold only the modules of tests of a file of the code."""


@dataclass(frozen=True, slots=True)
class FoundTests:
    """The tests that tell a change."""

    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    failures: Mapping[str, str] = field(default_factory=dict)
    """Test that fails without the fix → pytest's report."""
    seconds: float = 0.0
    """Wall time of the longest run."""


@dataclass(frozen=True, slots=True)
class NotTold:
    """Why the tests do not tell a change."""

    reason: str
    environment: bool = False
    """True if another environment may help."""


def take_apart(
    before: Snapshot, after: Snapshot, modules: Sequence[str], restored: Sequence[str] = ()
) -> Change:
    """Divide a step into its fix and its tests.

    Args:
        before: the files without it.
        after: the files with it.
        modules: files of code that it changes.
        restored: patterns of tests and configuration; none: those of pytest.
    """
    changed = [name for name in sorted({*before, *after}) if before.get(name) != after.get(name)]
    patterns = tuple(restored) or restored_patterns(before)
    ours = {name for name in changed if is_restored(name, patterns) or is_test_material(name)}
    extra = tuple(sorted(name for name in ours if not is_restored(name, patterns) and name in after))
    fixed = {name: entry for name, entry in before.items() if name not in changed or name in ours}
    fixed |= {
        name: after[name] for name in changed if name in after and name not in ours and not _is_document(name)
    }
    fixed |= {name: before[name] for name in changed if name in before and _is_document(name)}
    tested = {name: entry for name, entry in before.items() if name not in ours}
    tested |= {name: after[name] for name in ours if name in after}
    return Change(
        workspace=before,
        fix=patch(before, fixed),
        hidden={name: after[name] for name in sorted(ours) if name in after},
        deleted=tuple(sorted(name for name in ours if name not in after)),
        modules=tuple(modules),
        restored=(*patterns, *extra),
        test_patch=patch(before, tested),
    )


def restored_patterns(files: Snapshot) -> tuple[str, ...]:
    """Return patterns for the tests and the configuration of a workspace."""
    more = ["testing/*"] if any(name.startswith("testing/") for name in files) else []
    return (*LANGUAGES[Language.PYTHON].restored, *more)


def _is_document(name: str) -> bool:
    """Return whether a file tells people of a change, or locks versions: it is no part of the fix."""
    path = PurePosixPath(name)
    top = path.parts[0].lower()
    is_text = path.suffix.lower() in (".md", ".rst", ".txt", ".adoc")
    if path.name in LOCKS:
        return True
    return top in ("docs", "doc", ".github", "changelog.d", "changes", "news") or (
        len(path.parts) == 1 and is_text
    )


async def find_tests(
    change: Change, exam: Exam, run: Run, quick: Sequence[str] | None = None
) -> FoundTests | NotTold:
    """Return the tests that tell a change.

    Args:
        change: the step.
        exam: workspace, hidden tests and environment; its lists of tests are not used.
        run: performs a survey.
        quick: files that run; None: those of the change, and the nearest.
    """
    files = tuple(quick) if quick is not None else near_files(change)
    survey = Survey(files=files)
    fixed = await run(exam, change.fix, survey)
    if wrong := _find_trouble(fixed, exam, "with the fix"):
        return wrong
    passing = stable_names(name for name, outcome in fixed.outcomes.items() if outcome == "passed")
    before = await run(exam, b"", survey)
    if before.foreign:
        return NotTold(f"a module of the project comes from elsewhere: {before.foreign[0]}")
    failing = [name for name in passing if before.outcomes.get(name) != "passed"]
    if BUILD in before.broken:
        return NotTold("the new tests do not build without the fix")
    if failing and before.broken:
        failing = await _without_old(change, exam, run, failing)
    kept = [name for name in passing if before.outcomes.get(name) == "passed"]
    if reason := _check_numbers(failing, kept):
        ended = Counter(fixed.outcomes.values())
        return NotTold(reason, environment=ended["failed"] > ended["passed"])
    return await _repeat(change, exam, run, replace_files(survey, failing, kept), (failing, kept, before))


def replace_files(survey: Survey, failing: Sequence[str], kept: Sequence[str]) -> Survey:
    """Return a survey of the files that hold some tests."""
    files = dict.fromkeys(name.split("::", 1)[0] for name in [*failing, *kept])
    return replace(survey, files=tuple(files))


async def _repeat(
    change: Change, exam: Exam, run: Run, survey: Survey, first: tuple[list[str], list[str], TestRun]
) -> FoundTests | NotTold:
    """Run both sides again, and drop the tests that end otherwise."""
    failing, kept, before = first
    seconds, failures = before.seconds, dict(before.messages)
    for _ in range(TIMES - 1):
        fixed, broken = await run(exam, change.fix, survey), await run(exam, b"", survey)
        failing = [
            n for n in failing if fixed.outcomes.get(n) == "passed" and broken.outcomes.get(n) != "passed"
        ]
        kept = [n for n in kept if fixed.outcomes.get(n) == "passed" and broken.outcomes.get(n) == "passed"]
        seconds = max(seconds, fixed.seconds, broken.seconds)
    if reason := _check_numbers(failing, kept):
        return NotTold(f"{reason}, once tests are dropped that do not always end the same")
    told = {n: failures.get(n) or before.broken.get(n.split("::", 1)[0], "") for n in failing}
    return FoundTests(tuple(failing), tuple(kept[:PASS_MOST]), told, seconds)


async def _without_old(change: Change, exam: Exam, run: Run, failing: Sequence[str]) -> list[str]:
    """Return the failing tests but those that the parent's own tests have, and pass: only their file cannot be read."""
    old = replace(exam, hidden={}, tests=replace(exam.tests, deleted=(), parts=()))
    files = tuple(sorted({n.split("::", 1)[0] for n in failing} & {*change.workspace}))
    passed = (await run(old, b"", Survey(files=files))).outcomes if files else {}
    return [name for name in failing if passed.get(name) != "passed"]


def find_cause(log: str) -> str:
    """Return the last line of a log that names an error; its last one if none does."""
    errors = [line.strip() for line in log.splitlines() if re.search(r"error\b", line, re.IGNORECASE)]
    return errors[-1] if errors else log.strip().rpartition("\n")[2]


def _find_trouble(run: TestRun, exam: Exam, when: str) -> NotTold | None:
    if run.refused:
        return NotTold(f"the fix does not apply: {run.refused}")
    if run.foreign:
        return NotTold(f"a module of the project comes from elsewhere: {run.foreign[0]}")
    if any(outcome == "passed" for outcome in run.outcomes.values()):
        return None
    broken = [
        said.strip().rpartition("\n")[2] for name, said in run.broken.items() if name in (*exam.hidden, BUILD)
    ]
    end = find_cause(run.log.decode("utf-8", "replace"))
    why = (
        next(iter(broken), "")
        or (end if not run.outcomes else run.problem)
        or f"{len(run.outcomes)} tests ran"
    )
    return NotTold(f"no test passes {when}: {why}", environment=True)


def _check_numbers(failing: Sequence[str], kept: Sequence[str]) -> str:
    if not failing:
        return "no test fails without the fix and passes with it"
    if len(failing) > FAIL_MOST:
        return f"more than {FAIL_MOST} tests fail without the fix"
    return "" if kept else "no test passes both with the fix and without it"


def stable_names(names: Iterable[str]) -> list[str]:
    """Return the names that are the same in every run, in their order."""
    given = [name for name in names if isinstance(name, str)]
    return [
        name
        for name in given
        if not _UNSTABLE.search(name) and len(name) <= _LONGEST_NAME and name.isprintable()
    ]


def near_files(change: Change) -> tuple[str, ...]:
    """Return the test files of the change, and of the others those nearest to it by name and place."""
    own = [name for name in change.hidden if _is_collected(name)]
    stems = {PurePosixPath(name).stem.strip("_") for name in change.modules}
    stems |= {PurePosixPath(name).parent.name for name in change.modules}
    places = {str(PurePosixPath(name).parent) for name in own}

    def nearness(name: str) -> tuple[bool, bool, int, str]:
        path = PurePosixPath(name)
        stem = _TEST_MARK.sub("", path.stem)
        return stem not in stems, str(path.parent) not in places, len(change.workspace[name].data), name

    gone = {*own, *change.deleted}
    others = sorted((n for n in change.workspace if _is_collected(n) and n not in gone), key=nearness)
    return (*own, *others[:NEAR_FILES])


def _is_collected(name: str) -> bool:
    stem = PurePosixPath(name)
    if language_of(name) is not Language.PYTHON:
        return is_test_file(name)
    return stem.stem.startswith("test_") or stem.stem.endswith("_test") or stem.stem == "tests"
