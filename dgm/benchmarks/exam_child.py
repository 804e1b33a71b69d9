"""Runs the tests of one module inside the sandbox, in the process that imports the repository; standard library only.

``exam_runner.py`` starts it (Python >= 3.9). Tests are imported as they were read before anything graded ran, whatever
stands on the disk by then. Code under test shares this process, so nothing that it says is more than a claim: the
host compares it with what tests must report.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib
import importlib.machinery
import importlib.util
import io
import json
import os
import sys
import traceback
import unittest
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib.machinery import all_suffixes
from typing import TYPE_CHECKING, Any

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
    "compile",
    "exec",
)
"""Python's own names by which ``unittest`` decides, or tests are made."""


class HeldLoader(importlib.machinery.SourceFileLoader):
    """Runs the code of one test file that was compiled before anything graded was imported."""

    def __init__(self, name: str, path: str, held: HeldTests, run: Callable[..., None] = exec) -> None:
        super().__init__(name, path)
        self._held, self._run = held, run

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002  (the loader's own)
        """Return what was compiled."""
        return self._held.codes[self.path]

    def exec_module(self, module: ModuleType) -> None:
        """Run it, whatever ``exec`` is by now."""
        self._held.executed[id(module)] = (module, self.path)
        self._run(self._held.codes[self.path], vars(module))


class HeldTests:
    """Finds the test files that were compiled, so that nothing else can stand in for them."""

    def __init__(self, codes: dict[str, CodeType], folders: Collection[str] = ()) -> None:
        self.codes = codes
        """Path → code."""
        self.executed: dict[int, tuple[ModuleType, str]] = {}
        """Identity of a module → the module and its path."""
        self._folders = folders
        self._names = {part.removesuffix(".py") for path in codes for part in path.split("/")[-2:]}
        self._endings = [f"{inside}{suffix}" for inside in ("/__init__", "") for suffix in all_suffixes()]
        self._stat, self._cwd = os.stat, os.getcwd

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the module of the first folder that has it, if it is a test's."""
        tail = name.rpartition(".")[2]
        for folder in (sys.path if path is None else path) if tail in self._names else ():
            stem = f"{folder or self._cwd()}/{tail}"
            for file in (f"{stem}/__init__.py", f"{stem}.py"):
                if file in self.codes:
                    inside = [stem] if file.endswith("/__init__.py") else None
                    return importlib.util.spec_from_file_location(
                        name, file, loader=HeldLoader(name, file, self), submodule_search_locations=inside
                    )
            if stem in self._folders:
                spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
                spec.submodule_search_locations = [stem]
                return spec
            if any(self._exists(stem + ending) for ending in self._endings):
                return None
        return None

    def _exists(self, file: str) -> bool:
        try:
            self._stat(file)
        except (OSError, ValueError):
            return False
        return True

    def lead(self) -> None:
        """Make this the first finder of ``sys.meta_path``, whatever is inserted there later."""
        sys.meta_path = LedBy(self, sys.meta_path)


class LedBy(list[Any]):
    """A list that begins with one element whatever is inserted before it."""

    def __init__(self, first: HeldTests, others: Iterable[Any]) -> None:
        super().__init__([first, *(each for each in others if each is not first)])
        self._first = first

    def __iter__(self) -> Iterator[Any]:
        yield self._first
        yield from (each for each in list.__iter__(self) if each is not self._first)


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
    path = sys.meta_path

    def check() -> bool:
        now = framework()
        same = before.keys() == now.keys() and all(before[name] is now[name] for name in now)
        builtin = all(vars(builtins).get(name) is value for name, value in own.items())
        return same and builtin and profile() is None and trace() is None and sys.meta_path is path

    return check


def compile_tests(sources: dict[str, bytes]) -> dict[str, CodeType]:
    """Return the code of test files by their paths, without those that are no Python."""
    codes = {}
    for path, source in sources.items():
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            codes[path] = compile(source, path, "exec", dont_inherit=True)
    return codes


def parents(path: str, top: str) -> list[str]:
    """Return the folders between a file and a folder around it."""
    parts = path[len(top) + 1 :].split("/")
    return [f"{top}/{'/'.join(parts[:n])}" for n in range(1, len(parts))]


def child(results_fd: int) -> None:
    """The only process that imports the repository: runs the tests and says what became of each."""
    task = json.load(sys.stdin)
    os.set_inheritable(results_fd, False)
    nonce, workdir, dumps, write, leave = task["nonce"], task["workdir"], json.dumps, os.write, os._exit
    tests = {f"{workdir}/{name}": text.encode("latin-1") for name, text in task["sources"].items()}
    HeldTests(compile_tests(tests), {parent for path in tests for parent in parents(path, workdir)}).lead()
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
