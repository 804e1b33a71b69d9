"""Grading of a patch by unit tests: what their outcomes mean, and what of a failure may be shown.

The tests run in fresh sandboxes (``unit_exam``). A patch that would count is tried on changed tests, too
(``tampering``).
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from dgm.benchmarks.grade import judge_outcomes, mask_hidden_lines, show_failures, unresolved
from dgm.benchmarks.prediction_patches import normalised_patch, with_notes
from dgm.benchmarks.tampering import PREFIX, find_tampering, run_all
from dgm.benchmarks.unit_exam import Exam, TestRun, run_modules
from dgm.domain import Verdict
from dgm.protocols import Grade, SandboxEngine

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


def label_twins(log: bytes, failing: Collection[str]) -> bytes:
    """Return a log in which the failures of tests that must fail do not look like those of the suite's tests."""
    for name in failing:
        log = log.replace(
            f"FAIL: {name}\n".encode("utf-8", "replace"),
            b"A copy of a test, with a changed value, fails as it must:\n",
        )
    return log
