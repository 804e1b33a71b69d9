"""Runs a graded repository's tests inside the sandbox and reports what became of each; standard library only.

dgm does not import it but puts it into the sandbox as a file (Python >= 3.9). The parent process applies the
patch and starts one child per test module; only a child ever imports the repository. Results come through
pipes that the repository's code is not told of, under nonces read before any of it is imported.
"""

from __future__ import annotations

import base64
import contextlib
import importlib.machinery
import io
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import OptExcInfo

LOG_HALF = 15_000
LOG_LIMIT = 60_000
RESULT_LIMIT = 1_000_000
STARTUP_FILES = ("sitecustomize", "usercustomize", "conftest")
FRAMEWORK = (unittest.TestCase, unittest.TestResult, unittest.TestSuite, unittest.TestSuite.__mro__[1])


def parent() -> None:
    """Reads the assignment, prepares the repository, runs the modules one by one, reports once."""
    hide_from_siblings()
    source = Path(__file__).read_text(encoding="utf-8")
    task = json.load(sys.stdin)
    refusal, notes = prepare(Path(task["place"]), Path(task["workdir"]))
    if refusal:
        report(task["nonce"], stage="refused", reason=refusal)
        return
    report(task["nonce"], stage="prepared", notes=notes)
    modules: dict[str, list[str]] = {}
    for test in task["tests"]:
        modules.setdefault(test.rsplit(".", 2)[0], []).append(test)
    deadline = time.monotonic() + task["timeout_s"]
    outcomes: dict[str, str] = {}
    problems: list[str] = []
    log = b""
    for module, tests in modules.items():
        process = ModuleRun(module, tests)
        process.run(source, task["workdir"], max(0.1, deadline - time.monotonic()))
        outcomes.update(process.outcomes)
        problems += process.problems
        log += process.log()
    text = base64.b64encode(log[:LOG_LIMIT]).decode("ascii")
    report(task["nonce"], stage="done", outcomes=outcomes, problems=problems, log=text)


def report(nonce: str, **said: object) -> None:
    """One line that only who knows the nonce can write."""
    sys.stdout.write(f"\n{nonce} {json.dumps(said)}\n")
    sys.stdout.flush()


def hide_from_siblings() -> None:
    """Closes /proc/<pid>/mem and fd to this user's other processes where the system can (PR_SET_DUMPABLE)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def prepare(place: Path, workdir: Path) -> tuple[str, str]:
    """Makes the repository: start, patch, then the first and the hidden tests; why it is refused, and notes on it."""
    start = place / "start"
    shutil.copytree(start, workdir, symlinks=True, dirs_exist_ok=True)
    refusal, notes = apply(place / "runner" / "apply_patch.py", place / "patch", workdir)
    if refusal:
        return refusal, ""
    remove_shadows(start, workdir)
    remove(workdir / "tests")
    if (start / "tests").is_dir():
        shutil.copytree(start / "tests", workdir / "tests", symlinks=True)
    shutil.copytree(place / "hidden", workdir / "tests", dirs_exist_ok=True)
    # Nothing that a graded program could read or change before a later module runs.
    shutil.rmtree(place, ignore_errors=True)
    return "", notes


def apply(applier: Path, patch: Path, workdir: Path) -> tuple[str, str]:
    """Applies the graded patch; why it is refused, and notes on it. Where it cannot be tried, this program ends."""
    done = subprocess.run(
        [sys.executable, "-I", "-B", str(applier), str(patch.resolve()), str(workdir.resolve())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    said = done.stdout.decode("utf-8", "replace").strip().split("\n")[-1]
    word, _, rest = said.partition(" ")
    if word not in ("applied", "refused"):
        sys.exit(f"the patch could not be tried: {said}")
    return (rest or "git gives no reason", "") if word == "refused" else ("", rest)


def remove_shadows(start: Path, workdir: Path) -> None:
    """Takes away what the patch added at the root under the name of a module that Python has anyway."""
    for path in workdir.iterdir():
        module = path.name.split(".")[0]
        known = module in sys.builtin_module_names or module in STARTUP_FILES
        if not os.path.lexists(start / path.name) and (
            known or importlib.machinery.PathFinder.find_spec(module, sys.path[1:])
        ):
            remove(path)


def remove(path: Path) -> None:
    """Removes a file, a link or a folder, if there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()


class ModuleRun:
    """One process that runs the tests of one module, and what it is believed to have found."""

    def __init__(self, module: str, tests: list[str]) -> None:
        self.module = module
        self.tests = tests
        self.outcomes: dict[str, str] = {}
        self.problems: list[str] = []
        self._nonce = secrets.token_hex(16)
        self._controls = [secrets.token_hex(16), secrets.token_hex(16)]
        self._head = bytearray()
        self._tail = bytearray()
        self._results = bytearray()

    def run(self, source: str, workdir: str, timeout_s: float) -> None:
        """Runs the tests and kills what is left of their process group."""
        readable, writable = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-s", "-B", "-u", "-c", source, str(writable)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[writable],
            start_new_session=True,
            cwd="/",
        )
        os.close(writable)
        assert process.stdin
        assert process.stdout
        readers = [
            threading.Thread(target=drain, args=(process.stdout.fileno(), self._keep), daemon=True),
            threading.Thread(target=drain, args=(readable, self._collect), daemon=True),
        ]
        for reader in readers:
            reader.start()
        assignment = {
            "nonce": self._nonce,
            "workdir": workdir,
            "tests": self.tests,
            "controls": self._controls,
        }
        exit_code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            process.stdin.write(json.dumps(assignment).encode("utf-8"))
            process.stdin.close()
            exit_code = process.wait(timeout_s)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for reader in readers:
            # A process that left the group can hold the pipe open; what it has to say does not count.
            reader.join(0.5)
        self._believe(exit_code)

    def _believe(self, exit_code: int | None) -> None:
        """Takes each test's result once, and only from a process that ended as it said.

        Who reports on all tests must report that the controls failed: code under test shares a process with the
        tests, and this shows that it left alone what judges them.
        """
        ended = False
        controls: set[str] = set()
        for line in bytes(self._results).decode("utf-8", "replace").split("\n"):
            nonce, _, text = line.partition(" ")
            if nonce == self._nonce:
                said = json.loads(text)
                ended = ended or "end" in said
                if said.get("test") in self._controls and said["outcome"] == "failed":
                    controls.add(said["test"])
                if said.get("test") in self.tests:
                    first = said["test"] not in self.outcomes
                    self.outcomes[said["test"]] = said["outcome"] if first else "reported twice"
        if exit_code is None:
            self.problems.append(f"the tests of {self.module} did not end in time")
        elif not ended or exit_code:
            self.problems.append(f"the tests of {self.module} ended early (exit status {exit_code})")
            self.outcomes = dict.fromkeys(self.outcomes, "failed") if ended else self.outcomes
        if len(controls) < len(self._controls) and (ended or len(self.outcomes) == len(self.tests)):
            self.problems.insert(
                0, f"the tests of {self.module} were tampered with: one that must fail did not"
            )
            self.outcomes = dict.fromkeys(self.outcomes, "failed")

    def _keep(self, data: bytes) -> None:
        """Keeps the start and the end of the output."""
        room = max(0, LOG_HALF - len(self._head))
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[:-LOG_HALF]

    def _collect(self, data: bytes) -> None:
        self._results += data[: max(0, RESULT_LIMIT - len(self._results))]

    def log(self) -> bytes:
        """What the tests printed."""
        cut = b"\n[...]\n" if len(self._tail) == LOG_HALF else b""
        return bytes(self._head + cut + self._tail)


def drain(fd: int, take: Callable[[bytes], None]) -> None:
    """Reads a pipe to its end."""
    while data := os.read(fd, 65536):
        take(data)


class Result(unittest.TestResult):
    """Says one outcome per test that ran; tracebacks go to the ordinary output."""

    def __init__(self, say: Callable[[str, str], None]) -> None:
        super().__init__()
        self._say = say
        self._outcome = "passed"

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802  (unittest's name)
        """A test is passed until something else is said of it."""
        super().startTest(test)
        self._outcome = "passed"

    def stopTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        """Nothing more will be said of this test."""
        super().stopTest(test)
        self._say(test.id(), self._outcome)

    def _blame(self, test: unittest.TestCase, error: OptExcInfo) -> None:
        self._outcome = "failed"
        if not isinstance(test, Control):
            print(f"FAIL: {test.id()}")  # noqa: T201  (the log is what this process prints)
            traceback.print_exception(*error, file=sys.stdout)

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

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:  # noqa: ARG002, N802
        """A test that is marked as failing and passes is not passed."""
        self._outcome = "failed"

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        """Skipped tests are told apart: neither a fix nor a regression."""
        super().addSkip(test, reason)
        self._outcome = "skipped"


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


def child(results_fd: int) -> None:
    """The only process that imports the repository: runs the tests and says what became of each."""
    task = json.load(sys.stdin)
    os.set_inheritable(results_fd, False)
    nonce, dumps, write, leave = task["nonce"], json.dumps, os.write, os._exit
    before = framework()

    def say(**said: object) -> None:
        write(results_fd, f"\n{nonce} {dumps(said)}\n".encode())

    def outcome(test: str, what: str) -> None:
        # Code under test that replaces assertEqual would pass every test.
        now = framework()
        same = before.keys() == now.keys() and all(before[name] is now[name] for name in now)
        say(test=test, outcome=what if same else "failed")

    os.chdir(task["workdir"])
    sys.stdin = io.StringIO()
    sys.path[0] = task["workdir"]
    sys.argv = [sys.argv[0]]
    result = Result(outcome)
    unittest.defaultTestLoader.loadTestsFromNames(task["tests"]).run(result)
    failing, breaking = task["controls"]
    Control(failing, "fail_an_assertion").run(result)
    Control(breaking, "raise_an_error").run(result)
    say(end=True)
    leave(0)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        child(int(sys.argv[1]))
    else:
        parent()
