"""Runs the tests of one module inside the sandbox, in the process that imports the repository; standard library only.

``exam_runner.py`` starts it (Python >= 3.9). Tests are imported as they were read before anything graded ran, whatever
stands on the disk by then. Code under test shares this process, so nothing that it says is more than a claim: the
host compares it with what tests must report.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import traceback
import unittest
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType, ModuleType

    from _typeshed import OptExcInfo

MOST = 8
"""Maximum number of places in own files that are told of an exception."""
FRAMEWORK = (unittest.TestCase, unittest.TestResult, unittest.TestSuite, unittest.TestSuite.__mro__[1])
DECIDING = (
    "__build_class__",
    "__import__",
    "isinstance",
    "issubclass",
    "getattr",
    "type",
    "AssertionError",
    "Exception",
)
"""Python's own names by which ``unittest`` decides, or tests are made."""


class HeldLoader(importlib.machinery.SourceFileLoader):
    """Imports one test file from the text that the parent read."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  (the loader's own)
        """Compiles what was read."""
        return compile(self._text.encode("latin-1"), self.path, "exec", dont_inherit=True)


class HeldTests:
    """Finds the modules of the tests' folder, so that nothing else can stand in for them."""

    def __init__(self, workdir: str, sources: dict[str, str]) -> None:
        self._workdir = workdir
        self._sources = sources

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002  (the shape of a finder)
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """The module's file, or the folder."""
        stem = name.replace(".", "/")
        if name != "tests" and not name.startswith("tests."):
            return None
        for file, inside in ((f"{stem}/__init__.py", True), (f"{stem}.py", False)):
            if file in self._sources:
                place = f"{self._workdir}/{file}"
                loader = HeldLoader(name, place, self._sources[file])
                folders = [os.path.dirname(place)] if inside else None  # noqa: PTH120
                return importlib.util.spec_from_file_location(
                    name, place, loader=loader, submodule_search_locations=folders
                )
        if any(file.startswith(f"{stem}/") for file in self._sources):
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [f"{self._workdir}/{stem}"]
            return spec
        return None


class Result(unittest.TestResult):
    """Says one outcome per test that ran; tracebacks go to the ordinary output."""

    def __init__(self, say: Callable[..., None], workdir: str) -> None:
        super().__init__()
        self._say = say
        self._workdir = workdir
        self._outcome = "passed"
        self._error: dict[str, object] | None = None

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802  (unittest's name)
        """A test is passed until something else is said of it."""
        super().startTest(test)
        self._outcome, self._error = "passed", None

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Nothing more will be said of this test."""
        super().stopTest(test)
        self._say(test.id(), self._outcome, self._error)

    def _blame(self, test: unittest.TestCase, error: OptExcInfo) -> None:
        self._outcome = "failed"
        if not isinstance(test, Control):
            self._error = self._error or describe(error[1], self._workdir)
            print(f"FAIL: {test.id()}")  # noqa: T201  (the log is what this process prints)
            traceback.print_exception(*error, file=sys.stdout)

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        """A test is passed only if no failure of it was expected, which code under test could have arranged."""
        outcome = getattr(test, "_outcome", None)
        if getattr(outcome, "expecting_failure", False) or getattr(outcome, "expectedFailure", None):
            self._outcome = "failed"

    def addError(self, test: unittest.TestCase, err: OptExcInfo) -> None:  # noqa: N802
        """An error in a test or in a fixture of its class or module."""
        self._blame(test, err)

    def addFailure(self, test: unittest.TestCase, err: OptExcInfo) -> None:  # noqa: N802
        """A failed assertion."""
        self._blame(test, err)

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: OptExcInfo | None) -> None:  # noqa: ARG002, N802
        """A failed subtest fails the test that it is part of."""
        if err is not None:
            self._blame(subtest, err)

    def addExpectedFailure(self, test: unittest.TestCase, err: OptExcInfo) -> None:  # noqa: ARG002, N802
        """A test that is marked as failing, and fails, is not passed."""
        self._outcome = "failed"

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: ARG002, N802
        """A test that is marked as failing and passes is not passed."""
        self._outcome = "failed"

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        """Skipped tests are told apart: the host asks whether the unchanged repository skips them too."""
        super().addSkip(test, reason)
        self._outcome = "skipped"


def describe(error: BaseException | None, workdir: str) -> dict[str, object]:
    """The kind of an exception, and the places in the repository's own files that it went through."""
    places: list[tuple[str, int | None]] = []
    if error is not None:
        places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno))
    inside = [(name[len(workdir) + 1 :], line) for name, line in places if name.startswith(f"{workdir}/")]
    lines = [(name, line) for name, line in inside if not name.startswith("tests/")]
    return {"kind": type(error).__name__, "lines": lines[-MOST:]}


class Control(unittest.TestCase):
    """A test that must fail, under a name that only its runner knows."""

    def __init__(self, name: str, method: str) -> None:
        super().__init__(method)
        self._name = name

    def id(self) -> str:
        """The secret name."""
        return self._name

    def fail_an_assertion(self) -> None:
        """Is wrong."""
        self.assertEqual("this", "that")  # noqa: PT009  (this is what must not be tampered with)

    def raise_an_error(self) -> None:
        """Breaks."""
        raise LookupError(self._name)


def framework() -> dict[tuple[int, str], object]:
    """Every attribute of the classes that decide whether a test passes."""
    return {
        (place, name): value for place, kind in enumerate(FRAMEWORK) for name, value in vars(kind).items()
    }


def untouched() -> Callable[[], bool]:
    """A check whether what runs a test, and Python's own functions, are what they were, and nobody traces them."""
    before, own = framework(), {name: vars(builtins)[name] for name in DECIDING}
    profile, trace = sys.getprofile, sys.gettrace

    def check() -> bool:
        now = framework()
        same = before.keys() == now.keys() and all(before[name] is now[name] for name in now)
        builtin = all(vars(builtins).get(name) is value for name, value in own.items())
        return same and builtin and profile() is None and trace() is None

    return check


def child(results_fd: int) -> None:
    """The only process that imports the repository: runs the tests and says what became of each."""
    task = json.load(sys.stdin)
    os.set_inheritable(results_fd, False)
    nonce, workdir, dumps, write, leave = task["nonce"], task["workdir"], json.dumps, os.write, os._exit
    check = untouched()

    def say(**said: object) -> None:
        write(results_fd, f"\n{nonce} {dumps(said)}\n".encode())

    def outcome(test: str, what: str, error: dict[str, object] | None) -> None:
        # Code under test that replaces assertEqual would pass every test.
        say(test=test, outcome=what if check() else "failed", error=error)

    os.chdir(workdir)
    sys.stdin = io.StringIO()
    sys.path[0] = workdir
    sys.argv = [sys.argv[0]]
    sys.meta_path.insert(0, HeldTests(workdir, task["sources"]))
    result = Result(outcome, workdir)
    try:
        importlib.import_module(task["module"])
    except Exception as error:  # noqa: BLE001  (whatever the repository raises)
        print(f"FAIL: {task['module']}")  # noqa: T201
        traceback.print_exception(type(error), error, error.__traceback__, file=sys.stdout)
        for test in task["tests"]:
            outcome(test, "failed", describe(error, workdir))
    else:
        unittest.defaultTestLoader.loadTestsFromNames(task["tests"]).run(result)
    failing, breaking = task["controls"]
    Control(failing, "fail_an_assertion").run(result)
    Control(breaking, "raise_an_error").run(result)
    say(end=True)
    leave(0)


if __name__ == "__main__":
    child(int(sys.argv[1]))
