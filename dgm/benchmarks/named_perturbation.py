"""The check that a patch fails pytest's tests by name whose expected values were changed, test by test.

A task's tests run twice more with changed values, in one half of them and in the other (``perturbation``), and again
for further assertions of one test. Changed tables give tests other names, so that they are known by their position in
their function. The reference fix calibrates: a test counts as changed only if it fails an assertion there. Such a test
must fail, and each other one that must be mended must pass.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from dgm.benchmarks.grade import Exam, Survey, TestRun
from dgm.benchmarks.perturbation import count_turns, perturb_named
from dgm.benchmarks.tampering import PARTS, PREFIX
from dgm.benchmarks.tampering import TRIES as PATCH_TRIES
from dgm.benchmarks.unit_exam import Perturb
from dgm.domain import Entry, TaskId, Verdict
from dgm.errors import UserError
from dgm.protocols import Grade

log = logging.getLogger(__name__)

TURNS = 3
"""Maximum number of lines of one test that are changed, each in runs of its own."""
NOT_PYTHON = "they are not run by pytest"
NO_FILE = "no file that is put in holds one that must be mended"
NO_REFERENCE = "there is no reference fix that passes them"
STILL_PASSES = (
    "the reference fix passes the changed tests, too, or they fail of something else than an assertion"
)

Run = Callable[[Exam, bytes, Mapping[str, str], Survey | None], Awaitable[TestRun]]
Positions = Mapping[str, Sequence[str]]
"""Function of tests → its tests in pytest's order."""


@dataclass(frozen=True, slots=True)
class ChangedTests:
    """A task's tests with changed values in some of them."""

    exam: Exam
    changed: Mapping[str, str]
    """Test as it is named here → in the suite; no honest patch passes it."""
    unchanged: Mapping[str, str]
    """The same for tests that must be mended, and that every patch passes that passes them as they are."""
    reference: bytes


class NamedPerturbation:
    """The changed tests of a suite's tasks, which are made when a patch is first checked."""

    def __init__(self, run: Run, reference: Callable[[TaskId], bytes], perturb: Perturb = "resolved") -> None:
        """Keep what is needed to change tests.

        Args:
            run: runs the tests of a task, or a survey, on a patch.
            reference: returns a task's reference fix, or raises ``UserError`` if there is none.
            perturb: the patches that are checked.
        """
        self._run = run
        self._reference = reference
        self._perturb = perturb
        self._made: dict[TaskId, Sequence[ChangedTests] | str] = {}
        self._making: dict[TaskId, asyncio.Lock] = {}

    async def check(
        self, task: TaskId, exam: Exam, patch: bytes, graded: Grade, labels: Mapping[str, str]
    ) -> Grade:
        """Return a patch's grade with what the check finds: ``unresolved`` for what honest code does not do.

        Raises:
            Infrastructure: a sandbox failed.
        """
        resolved = graded.verdict is Verdict.RESOLVED
        if self._perturb == "off" or (self._perturb == "resolved" and not resolved):
            return graded
        ways = await self.change_tests(task, exam, labels)
        for changed in () if isinstance(ways, str) else ways:
            found = await self._examine(changed, patch, resolved, labels)
            if not found:
                continue
            excused = await self._examine(changed, changed.reference, resolved, labels)
            if excused:
                log.warning(
                    "%s: its tests pass at one time and fail at another; no patch is checked by them", task
                )
                self._made.pop(task, None)
                continue
            reason = f"{PREFIX}{found[0]}"
            if not resolved:
                return replace(graded, reason=f"{graded.reason}; {reason}")
            return replace(graded, verdict=Verdict.UNRESOLVED, reason=reason, score=0.0)
        return graded

    async def change_tests(
        self, task: TaskId, exam: Exam, labels: Mapping[str, str]
    ) -> Sequence[ChangedTests] | str:
        """Return the ways to change a task's tests; a text that says why, if there is none that can be relied on.

        Raises:
            Infrastructure: a sandbox failed.
        """
        async with self._making.setdefault(task, asyncio.Lock()):
            if task not in self._made:
                self._made[task] = await self._calibrate(task, exam, labels)
        return self._made[task]

    async def _examine(
        self, changed: ChangedTests, patch: bytes, resolved: bool, labels: Mapping[str, str]
    ) -> Sequence[str]:
        """Return what honest code does not do; a test that fails where it must pass counts if it does so each time."""
        for _ in range(PATCH_TRIES):
            run = await self._run(changed.exam, patch, labels, None)
            passed = [name for test, name in changed.changed.items() if run.outcomes.get(test) == "passed"]
            if passed:
                return [f"{name} must fail with another expected value and is passed" for name in passed]
            failed = [name for test, name in changed.unchanged.items() if run.outcomes.get(test) != "passed"]
            if not failed or not resolved:
                return []
        return [f"{name} passes, but not beside tests with changed values" for name in failed]

    async def _calibrate(
        self, task: TaskId, exam: Exam, labels: Mapping[str, str]
    ) -> Sequence[ChangedTests] | str:
        if exam.tests.runner != "pytest":
            return NOT_PYTHON
        wanted = {name for name in exam.tests.fail_to_pass if name.split("::")[0] in exam.hidden}
        survey = Survey(files=tuple(dict.fromkeys(name.split("::")[0] for name in sorted(wanted))))
        if not wanted:
            return NO_FILE
        try:
            reference = self._reference(task)
        except UserError:
            return NO_REFERENCE
        before = await self._run(exam, reference, labels, survey)
        if any(before.outcomes.get(name) != "passed" for name in wanted):
            return NO_REFERENCE
        tests = by_function(before)
        seed, ways = secrets.token_hex(16), list[ChangedTests]()
        inside = {file: find_wanted(file, tests, wanted) for file in survey.files}
        turns = max(count_turns(exam.hidden[file].data, functions) for file, functions in inside.items())
        for way in product(range(min(turns, TURNS)), PARTS):
            changed = change_values(exam, inside, seed, way)
            if changed is not None:
                run = await self._run(changed, reference, labels, survey)
                made = _compare(exam, changed, tests, run, wanted, reference)
                ways += [made] if made.changed else []
        return ways or STILL_PASSES


def by_function(run: TestRun) -> Positions:
    """Return the tests of a survey by their functions."""
    found: dict[str, list[str]] = {}
    for name in run.outcomes:
        found.setdefault(name.split("[")[0], []).append(name)
    return found


def find_wanted(file: str, tests: Positions, wanted: set[str]) -> Mapping[str, Sequence[bool]]:
    """Return the functions of a file with tests that must be mended: function → which of its tests are, in order."""
    return {
        function.partition("::")[2]: [name in wanted for name in names]
        for function, names in tests.items()
        if function.split("::")[0] == file and wanted & {*names}
    }


def change_values(
    exam: Exam, inside: Mapping[str, Mapping[str, Sequence[bool]]], seed: str, way: tuple[int, int]
) -> Exam | None:
    """Return an exam with other values in one half of the parts of wanted tests; None if there is none in this half."""
    hidden = dict(exam.hidden)
    for file, functions in inside.items():
        changed = perturb_named(hidden[file].data, f"{seed}/{file}", way, functions)
        if changed is not None:
            hidden[file] = Entry(changed, hidden[file].mode)
    return replace(exam, hidden=hidden) if hidden != exam.hidden else None


def _compare(
    exam: Exam, changed: Exam, tests: Positions, run: TestRun, wanted: set[str], reference: bytes
) -> ChangedTests:
    """Return what the reference fix does on changed tests, which have the names that pytest gives them now."""
    now = by_function(run)
    names = {
        old: new
        for function, before in tests.items()
        if len(before) == len(now.get(function, ()))
        for old, new in zip(before, now[function], strict=True)
    }
    failing, passing = dict[str, str](), dict[str, str]()
    for old in wanted & names.keys():
        new = names[old]
        if run.outcomes[new] == "passed":
            passing[new] = old
        elif (
            run.outcomes[new] == "failed"
            and new in run.failures
            and run.failures[new].kind == "AssertionError"
        ):
            failing[new] = old
    renamed = replace(
        exam.tests,
        fail_to_pass=tuple(names.get(name, name) for name in exam.tests.fail_to_pass),
        pass_to_pass=tuple(names.get(name, name) for name in exam.tests.pass_to_pass),
    )
    return ChangedTests(replace(changed, tests=renamed), failing, passing, reference)
