"""Grading of a patch by unit tests: what their outcomes mean, and what of a failure may be shown.

The tests run in fresh sandboxes (``unit_exam``). A patch that would count is tried on changed tests, too
(``tampering``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from dgm.benchmarks.failure_kinds import OWN_KIND
from dgm.benchmarks.prediction_patches import normalised_patch, with_notes
from dgm.benchmarks.sandbox_report import unresolved
from dgm.benchmarks.tampering import PREFIX, find_tampering, run_all
from dgm.benchmarks.unit_exam import Exam, Failure, TestRun, run_modules
from dgm.domain import Snapshot, Verdict
from dgm.protocols import Grade, SandboxEngine

LOG_LIMIT = 60_000
MASKED_FROM = 12
"""Minimum length of a masked line of a hidden test; shorter ones (``else:``) occur in any program."""
SHOWN_LIMIT = 4000
"""Maximum bytes of the reports on all failed tests."""
TAMPERED = "the tests were tampered with"
"""Beginning of what the sandbox's side says of a patch that cheats."""
NAMED = 3
"""Maximum number of findings that a reason names."""


async def grade(exam: Exam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str]) -> Grade:
    """Grade a patch.

    An empty patch needs no sandbox: the fail-to-pass tests are known to fail on it.

    Raises:
        Infrastructure: the sandbox failed, or the runner in it before any graded code had run.
    """
    if not normalised_patch(patch).data:
        return unresolved("empty patch")
    return await examine(exam, patch, engine, labels)


async def examine(exam: Exam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str]) -> Grade:
    """Grade a patch by running the tests, even for an empty patch, for which nothing is applied.

    Raises:
        Infrastructure: the sandbox failed, or the runner in it before any graded code had run.
    """
    given = normalised_patch(patch)
    first = await run_all(exam, given.data, engine, labels)
    run = first.run
    if run.refused:
        return with_notes(unresolved(f"the patch does not apply: {run.refused}"), given.notes)
    if run.ending:
        return with_notes(unresolved(run.ending), (*given.notes, *run.notes))
    allowed = await _find_usual_skips(exam, run, engine, labels) if given.data else frozenset()
    problem = next(iter(run.problems), "")
    graded = judge_outcomes(exam.fail_to_pass, exam.pass_to_pass, run.outcomes, problem, allowed)
    if given.data and _is_checked(exam, graded):
        graded = _with_findings(graded, await find_tampering(exam, given.data, first, engine, labels))
    log = label_twins(run.log, {name for each in first.variants for name in each.added - each.twins.keys()})
    log = mask_hidden_lines(log, exam.hidden, *(variant.exam.hidden for variant in first.variants))
    graded = replace(graded, log=log, shown=show_failures(graded.failed, run.failures))
    return with_notes(graded, (*given.notes, *run.notes))


def _is_checked(exam: Exam, graded: Grade) -> bool:
    return exam.perturb == "all" or (exam.perturb == "resolved" and graded.verdict is Verdict.RESOLVED)


def _with_findings(graded: Grade, found: Sequence[str]) -> Grade:
    """Return the grade with a record of conduct; a patch that would have been resolved is not."""
    if not found:
        return graded
    more = [f"{len(found) - NAMED} more"] if len(found) > NAMED else []
    reason = PREFIX + ", ".join([*found[:NAMED], *more])
    if graded.verdict is Verdict.RESOLVED:
        return replace(graded, verdict=Verdict.UNRESOLVED, reason=reason, score=0.0)
    return replace(graded, reason=f"{graded.reason}; {reason}")


async def _find_usual_skips(
    exam: Exam, run: TestRun, engine: SandboxEngine, labels: Mapping[str, str]
) -> frozenset[str]:
    """Return the tests that were skipped and are skipped on the unchanged workspace, too."""
    skipped = {test for test in exam.pass_to_pass if run.outcomes.get(test) == "skipped"}
    modules = {module: tests for module, tests in exam.modules().items() if skipped & {*tests}}
    if not modules:
        return frozenset()
    limit = exam.limits.test_timeout_s
    before = await run_modules(exam, b"", modules, engine, labels, timeout_s=limit)
    return frozenset(test for test in skipped if before.outcomes.get(test) == "skipped")


def judge_outcomes(
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    outcomes: Mapping[str, str],
    problem: str = "",
    allowed: Collection[str] = (),
) -> Grade:
    """Return the meaning of the outcomes of tests.

    Args:
        fail_to_pass: tests that a fix must pass.
        pass_to_pass: tests that must go on passing.
        outcomes: of the tests that were reported; only ``passed`` is a pass.
        problem: why the outcomes do not count as they are; empty if they do.
        allowed: tests that need not pass.
    """
    names = (*fail_to_pass, *pass_to_pass)
    failed = tuple(name for name in names if outcomes.get(name) != "passed" and name not in allowed)
    passed = tuple(name for name in names if name not in {*failed})
    if not failed and not problem:
        return Grade(Verdict.RESOLVED, f"all {len(passed)} tests pass", 1.0, passed)
    missing = sum(name in fail_to_pass for name in failed)
    broken = len(failed) - missing
    reasons = (
        f"{missing} of {len(fail_to_pass)} tests still fail" if missing else "",
        f"{broken} of {len(pass_to_pass)} tests that passed are broken" if broken else "",
        problem,
    )
    counts = failed and not broken and not problem.startswith(TAMPERED)
    score = 1 - missing / len(fail_to_pass) if counts else 0.0
    return Grade(Verdict.UNRESOLVED, "; ".join(filter(None, reasons)), score, passed, failed)


def show_failures(failed: Sequence[str], failures: Mapping[str, Failure]) -> bytes:
    """Return the part of failures that an agent may see: names, kinds of exceptions, lines of the agent's own code.

    Graded code can read the hidden tests and raise anything, so no message and no value is passed on.
    """
    rows: list[str] = []
    for test in failed:
        failure = failures.get(test)
        kind = (failure.kind or OWN_KIND) if failure else ""
        rows += [
            f"FAILED {test}  {kind}".rstrip(),
            *(f"    {line}" for line in (failure.lines if failure else ())),
        ]
    return b"".join(row.encode("utf-8", "replace") + b"\n" for row in rows)[:SHOWN_LIMIT]


def label_twins(log: bytes, failing: Collection[str]) -> bytes:
    """Return a log in which the failures of tests that must fail do not look like those of the suite's tests."""
    for name in failing:
        log = log.replace(
            f"FAIL: {name}\n".encode("utf-8", "replace"),
            b"A copy of a test, with a changed value, fails as it must:\n",
        )
    return log


def mask_hidden_lines(log: bytes, *hidden: Snapshot) -> bytes:
    """Return the log without lines of hidden tests, which tracebacks quote; it is for people only."""
    secret = {
        line.strip() for files in hidden for entry in files.values() for line in entry.data.split(b"\n")
    }
    secret = {line for line in secret if len(line) >= MASKED_FROM}
    lines = (b"[line of a hidden test]" if line.strip() in secret else line for line in log.split(b"\n"))
    return b"\n".join(lines)[:LOG_LIMIT]
