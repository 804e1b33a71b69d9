"""C++: the exercise's own CMake project, which builds and runs its Catch tests."""

import re
from dataclasses import replace
from pathlib import Path

from exercise import Exercise, Outcome, need

_PASSED = re.compile(r"^All tests passed \(\d+ assertions? in (\d+) test cases?\)$", re.MULTILINE)
_FAILED = re.compile(r"^test cases: +\d+ \|(?: +(\d+) passed \|)? +(\d+) failed", re.MULTILINE)


def test(exercise: Exercise) -> Outcome:
    """Builds everything, all tests switched on."""
    need("cmake", "make", "g++")
    exercise = _named(exercise)
    build = str(exercise.scratch / "build")
    chosen = ["-G", "Unix Makefiles", "-DEXERCISM_RUN_ALL_TESTS=1"]
    code, _ = exercise.run(["cmake", "-S", ".", "-B", build, *chosen])
    if code:
        return Outcome(built=False)
    code, said = exercise.run(["cmake", "--build", build, "--", "-j2"])
    if failed := _FAILED.findall(said):
        good, bad = failed[-1]
        return Outcome(int(good or 0), int(bad))
    passed = sum(int(cases) for cases in _PASSED.findall(said))
    if code:
        # Once it is built, what fails is a crash that Catch could not report.
        return Outcome(passed, 1) if "Built target" in said else Outcome(built=False)
    return Outcome(passed)


def _named(exercise: Exercise) -> Exercise:
    """The project takes its files' names from its folder's: ``two-fer`` for ``two_fer_test.cpp``."""
    stems = [Path(test).stem for test in exercise.tests if test.endswith("_test.cpp")]
    if not stems:
        return exercise
    named = exercise.folder.with_name(stems[0][: -len("_test")].replace("_", "-"))
    exercise.folder.rename(named)
    return replace(exercise, folder=named)
