"""Verification of a task: no change fails, the reference fix passes, and no hidden test is visible."""

import ast
import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from dgm.archive.repository import patch
from dgm.benchmarks.mixed import MixedBenchmark
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.test_spec import TestSpec
from dgm.domain import Entry, Snapshot, TaskId, Verdict
from dgm.errors import UserError
from dgm.protocols import Benchmark, Grade, InImage

_NAMED = re.compile(rb"^(?:---|\+\+\+) [ab]/([^\t\n]+)\t?$", re.MULTILINE)
_ADDED = re.compile(rb"^--- /dev/null\n\+\+\+ b/([^\t\n]+)\t?$", re.MULTILINE)
_NODE = (".js", ".mjs", ".cjs")
AT_ONCE, AT_THE_END = "as soon as it is imported", "when its process ends"
_PYTHON = {
    AT_ONCE: b"import os\nos._exit(0)\n",
    AT_THE_END: b"import atexit, os\natexit.register(os._exit, 0)\n",
}
_JAVASCRIPT = {
    AT_ONCE: b"process.exit(0);\n",
    AT_THE_END: b'process.on("exit", () => process.reallyExit(0));\n',
}


@dataclass(frozen=True, slots=True)
class Canary:
    """A patch that no test command must take for a fix."""

    when: str
    """When its code ends the process with status 0."""
    patch: bytes


def make_canaries(workspace: Snapshot, reference: bytes) -> Sequence[Canary]:
    """Return a patch for each way to end a process, in the Python and JavaScript files that the reference fix touches.

    Args:
        workspace: the task's workspace; empty if it is inside an image, where only files that the fix adds are known.
        reference: the reference fix as a patch.
    """
    named = {name.decode("utf-8", "replace") for name in _NAMED.findall(reference)} & workspace.keys()
    named |= {name.decode("utf-8", "replace") for name in _ADDED.findall(reference)}
    found = []
    for when in _PYTHON:
        changed = {name: entry for name in named if (entry := _end_early(name, workspace, when))}
        if changed:
            found.append(Canary(when, patch(workspace, {**workspace, **changed})))
    return found


def _end_early(name: str, workspace: Snapshot, when: str) -> Entry | None:
    before = workspace.get(name, Entry(b""))
    if name.endswith(".py"):
        return Entry(_insert(before.data, _PYTHON[when]), before.mode)
    if name.endswith(_NODE):
        return Entry(_JAVASCRIPT[when] + before.data, before.mode)
    return None


def _insert(source: bytes, code: bytes) -> bytes:
    """Return a Python file with the code before everything but imports from ``__future__``, which must come first."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return code + source
    ends = [node.end_lineno or 0 for node in tree.body if _is_future(node)]
    lines = source.splitlines(keepends=True)
    at = max(ends, default=0)
    return b"".join([*lines[:at], code, *lines[at:]])


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


INERT = b"""\
diff --git a/dgm-does-nothing.txt b/dgm-does-nothing.txt
new file mode 100644
--- /dev/null
+++ b/dgm-does-nothing.txt
@@ -0,0 +1 @@
+nothing
"""
"""A patch that mends nothing, but makes the tests run; an empty one is not even tried."""

OUTPUT_LINES = 40
"""Lines that are shown of the tests' own output."""
_APART = "run the code under test in a process of its own, and compare what it prints"


@dataclass(frozen=True, slots=True)
class TaskVerification:
    """The result of verifying a task."""

    defects: Sequence[str]
    """One line each; nothing if the task is sound."""
    notes: Sequence[str] = ()
    """Remarks on a task that may be sound, one line each."""
    output: str = ""
    """The end of what the tests printed that show a defect."""


@runtime_checkable
class Verifiable(Protocol):
    """A benchmark that has a reference fix for each of its tasks."""

    def reference(self, task: TaskId) -> bytes:
        """Return the reference fix as a patch on the workspace; it is never shown to an agent."""
        ...


@runtime_checkable
class HasProblems(Protocol):
    """A benchmark that leaves wrong tasks out, and reports them."""

    problems: Sequence[str]
    """One line each, with the file or folder."""


def list_excluded_defects(benchmark: Benchmark) -> Sequence[str]:
    """Return the defects of tasks that the benchmark does not offer, one line each."""
    match benchmark:
        case MixedBenchmark():
            return [problem for part in benchmark.parts.values() for problem in list_excluded_defects(part)]
        case HasProblems():
            return benchmark.problems
        case _:
            return ()


async def verify(benchmark: Benchmark, task: TaskId, labels: Mapping[str, str]) -> Sequence[str]:
    """Return the defects of a task, one line each; nothing if it is sound.

    Raises:
        UserError: a file of the task is wrong, or the benchmark has no reference fixes.
        Infrastructure: a sandbox failed.
    """
    return (await verify_with_notes(benchmark, task, labels)).defects


async def verify_with_notes(
    benchmark: Benchmark, task: TaskId, labels: Mapping[str, str]
) -> TaskVerification:
    """Return the defects of a task, and what to know of it beside them.

    Raises:
        UserError: a file of the task is wrong, or the benchmark has no reference fixes.
        Infrastructure: a sandbox failed.
    """
    match benchmark:
        case MixedBenchmark():
            part, inner = benchmark.part(task)
            return await verify_with_notes(part, inner, labels)
        case SuiteBenchmark():
            return await _verify_suite_task(benchmark, task, labels)
        case Verifiable():
            empty = await benchmark.grade(task, b"", labels)
            untouched = await benchmark.grade(task, INERT, labels)
            reference = await benchmark.grade(task, benchmark.reference(task), labels)
            defects = [*_check_fails("an empty patch", empty), *_check_fails("doing nothing", untouched)]
            return TaskVerification([*defects, *_check_passes(reference)])
        case _:
            raise UserError(f"benchmark {benchmark.name!r} has no reference fixes to verify")


def _check_fails(what: str, grade: Grade) -> Sequence[str]:
    return [f"{what} is resolved: {grade.reason}"] if grade.verdict is Verdict.RESOLVED else []


def _check_passes(grade: Grade) -> Sequence[str]:
    if grade.verdict is Verdict.RESOLVED:
        return []
    failed = f" ({', '.join(grade.failed[:3])})" if grade.failed else ""
    return [f"the reference fix is {grade.verdict}: {grade.reason}{failed}"]


async def _verify_suite_task(
    suite: SuiteBenchmark, task: TaskId, labels: Mapping[str, str]
) -> TaskVerification:
    tests = suite.record(task).tests
    problems = await asyncio.to_thread(_find_visible_tests, suite, task)
    nothing = await suite.examine_unperturbed(task, b"", labels)
    problems += _check_by_name(tests, nothing) if tests.by_name else _check_fails("doing nothing", nothing)
    reference = await suite.solution(task, labels)
    graded = await (suite.examine_unperturbed if reference.strip() else suite.grade)(task, reference, labels)
    problems += _check_passes(graded)
    if problems:
        log = nothing.log if graded.verdict is Verdict.RESOLVED else graded.log
        lines = log.decode("utf-8", "replace").strip().splitlines()
        return TaskVerification(problems, output="\n".join(lines[-OUTPUT_LINES:]))
    early = TaskVerification([])
    if not tests.by_name:
        early = await find_early_ending(suite, task, reference, labels)
    return replace(early, notes=[await suite.describe_check(task, labels), *early.notes])


def _check_by_name(tests: TestSpec, nothing: Grade) -> Sequence[str]:
    """Return a line for each test that does not end without a fix as the task says."""
    # Where the hidden tests do not build without the fix, none passes.
    builds = bool(nothing.passed)
    return [
        *(f"{test} passes without a fix" for test in tests.fail_to_pass if test in nothing.passed),
        *(
            f"{test} fails without a fix"
            for test in tests.pass_to_pass
            if builds and test not in nothing.passed
        ),
    ]


async def find_early_ending(
    suite: SuiteBenchmark, task: TaskId, reference: bytes, labels: Mapping[str, str]
) -> TaskVerification:
    """Return a defect if a patch passes that ends its process with status 0; a note if only changed tests catch it.

    Raises:
        Infrastructure: a sandbox failed.
    """
    workspace = suite.workspace(task)
    canaries = make_canaries({} if isinstance(workspace, InImage) else workspace, reference)
    for canary in canaries:
        if (await suite.examine_unperturbed(task, canary.patch, labels)).verdict is not Verdict.RESOLVED:
            continue
        said = f"code passes that ends its process with status 0 {canary.when}"
        if (await suite.grade(task, canary.patch, labels)).verdict is Verdict.RESOLVED:
            return TaskVerification([f"{said}: {_APART}"])
        return TaskVerification([], [f"{said}, but for the tests with changed values: {_APART}"])
    return TaskVerification([])


def _find_visible_tests(suite: SuiteBenchmark, task: TaskId) -> list[str]:
    """Return the places where an agent could see a hidden test; a workspace in an image is not searched."""
    shown = suite.workspace(task)
    if isinstance(shown, InImage):
        return []
    hidden = {name: entry for name, entry in suite.hidden_tests(task).items() if entry.data.strip()}
    tests = suite.record(task).tests
    if tests.by_name:
        # What tests only read may be there in the same words under another name.
        hidden = {name: entry for name, entry in hidden.items() if name in tests.files}
    plain = bool(tests.folder)
    problems = [f"{name} is in the workspace" for name in hidden if plain and name in shown]
    texts = {entry.data for entry in shown.values()}
    problems += [
        f"the text of {name} is in the workspace" for name, entry in hidden.items() if entry.data in texts
    ]
    return problems
