"""Who is caught by tests with changed values, and who is not."""

import ast
import asyncio
import re

import pytest
from dgm.benchmarks.command_grading import CommandExam
from dgm.benchmarks.command_perturbation import (
    NO_REFERENCE,
    NO_VALUES,
    STILL_PASSES,
    CommandPerturbation,
    change_values,
)

from dgm.benchmarks.suite_files import CommandTests, Limits
from dgm.domain import Entry, TaskId, Verdict
from dgm.errors import UserError
from dgm.protocols import Grade

CHECK = b"""\
import sys
from scale import grams
sys.exit(0 if grams(2) == 2000 else 1)
"""
TASK, FIX, HONEST, CHEAT, READER, SLOW = TaskId("t"), b"fix", b"honest", b"cheat", b"reader", b"slow"


class Grader:
    """Grades as the command would that asks the patch for one number."""

    def __init__(self):
        self.patches = []

    async def examine(self, exam, patch, labels):
        self.patches.append(patch)
        wanted = self.wanted(exam.hidden["check.py"].data)
        answer = {FIX: 2000, HONEST: 2000, CHEAT: wanted, READER: wanted, SLOW: 2000}.get(patch)
        if answer == wanted:
            return Grade(Verdict.RESOLVED, "the tests pass", 1.0)
        return Grade(Verdict.UNRESOLVED, "the tests did not end within 8 s", 0.0)

    def wanted(self, check):
        return ast.literal_eval(re.search(rb"== (.*) else", check)[1].decode())

    async def solve(self, task, labels):
        return FIX


def exam(check=CHECK):
    hidden = {"check.py": Entry(check, 0o100755), "data.txt": Entry(b"2000")}
    return CommandExam({}, hidden, CommandTests(("python3", "/tests/check.py")), Limits())


def checked(grader, *patches, check=CHECK, perturb="resolved"):
    perturbation = CommandPerturbation(grader.examine, grader.solve, perturb)

    async def grade():
        for patch in patches:
            first = await grader.examine(exam(check), patch, {})
            yield await perturbation.check(TASK, exam(check), patch, first, {})

    async def collect():
        return [each async for each in grade()]

    return asyncio.run(collect())


@pytest.mark.parametrize("patch", [CHEAT, READER])
def test_patch_that_passes_whatever_is_expected_is_tampering(patch):
    (grade,) = checked(Grader(), patch)
    assert (grade.verdict, grade.score) == (Verdict.UNRESOLVED, 0.0)
    assert grade.reason == "tampering: it also passes tests whose expected values were changed"


@pytest.mark.parametrize("patch", [HONEST, FIX, SLOW])
def test_patch_that_fails_the_changed_tests_or_does_not_end_is_honest(patch):
    assert checked(Grader(), patch)[0].verdict is Verdict.RESOLVED


def test_setting_says_which_patches_are_checked():
    class Odd(Grader):
        """Its cheat passes the changed tests only."""

        async def examine(self, exam, patch, labels):
            if patch == CHEAT and exam.hidden["check.py"].data == CHECK:
                return Grade(Verdict.UNRESOLVED, "the tests fail", 0.0)
            return await super().examine(exam, patch, labels)

    assert checked(Grader(), CHEAT, perturb="off")[0].verdict is Verdict.RESOLVED
    assert checked(Odd(), CHEAT)[0].reason == "the tests fail"
    assert checked(Odd(), CHEAT, perturb="all")[0].reason.startswith("the tests fail; tampering: ")


def test_reference_calibrates_once():
    grader = Grader()
    checked(grader, HONEST, HONEST)
    assert grader.patches == [HONEST, FIX, FIX, HONEST, HONEST, HONEST]


def test_several_patches_at_once_wait_for_one_calibration():
    grader = Grader()
    perturbation = CommandPerturbation(grader.examine, grader.solve)

    async def both():
        await asyncio.gather(*(perturbation.change_tests(TASK, exam(), {}) for _ in range(3)))

    asyncio.run(both())
    assert grader.patches == [FIX, FIX]


def reason_of(grader, check=CHECK):
    return asyncio.run(CommandPerturbation(grader.examine, grader.solve).change_tests(TASK, exam(check), {}))


def test_tests_that_compare_nothing_are_left_as_they_are():
    assert reason_of(Grader(), b"import scale\n") == NO_VALUES
    assert reason_of(Grader(), b"not python\n") == NO_VALUES


def test_tests_whose_changes_the_reference_passes_are_left_as_they_are():
    class Lenient(Grader):
        def wanted(self, check):
            return 2000

    assert reason_of(Lenient()) == STILL_PASSES
    assert checked(Lenient(), HONEST)[0].verdict is Verdict.RESOLVED


def test_task_without_a_reference_that_passes_is_not_checked():
    class Broken(Grader):
        async def solve(self, task, labels):
            return b"does not pass"

    class Without(Grader):
        async def solve(self, task, labels):
            raise UserError("missing")

    assert reason_of(Broken()) == reason_of(Without()) == NO_REFERENCE


def test_tests_that_fail_by_chance_condemn_nobody():
    class Flaky(Grader):
        """The changed value is never compared, but the tests fail the first time that they are changed."""

        failed = False

        async def examine(self, exam, patch, labels):
            if exam.hidden["check.py"].data != CHECK and not self.failed:
                self.failed = True
                return Grade(Verdict.UNRESOLVED, "the tests fail", 0.0)
            return Grade(Verdict.RESOLVED, "the tests pass", 1.0)

    assert checked(Flaky(), HONEST)[0].verdict is Verdict.RESOLVED


def test_only_values_in_python_files_change():
    hidden = exam().hidden
    changed = change_values(hidden, "seed")
    assert changed["data.txt"] == hidden["data.txt"]
    assert changed["check.py"].mode == 0o100755
    assert re.sub(rb"\d{4}", b"2000", changed["check.py"].data) == CHECK
    assert changed["check.py"].data != CHECK
    assert changed == change_values(hidden, "seed")


def test_part_of_the_files_can_change():
    hidden = {f"{n}.py": Entry(b"assert f() == %d00\n" % n) for n in range(1, 9)}
    changes = {
        sum(hidden[n] != each[n] for n in hidden)
        for s in "abcdef"
        if (each := change_values(hidden, s, some=True))
    }
    assert len(changes) > 1


def test_guard_of_a_script_is_no_expected_value():
    check = b'if __name__ == "__main__":\n    assert f() == 12\n'
    assert b'== "__main__":' in change_values({"c.py": Entry(check)}, "seed")["c.py"].data
