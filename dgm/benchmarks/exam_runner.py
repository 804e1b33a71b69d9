"""Parts of the programs that run graded tests inside the sandbox; standard library only.

dgm puts it into the sandbox as a file (Python >= 3.9). Such a program applies the patch, reads the patched source, and
starts a child that runs the tests; only the child imports the graded code.
"""

from __future__ import annotations

import builtins
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

LOG_HALF = 15_000
LOG_LIMIT = 60_000
RESULT_LIMIT = 1_000_000
SOURCE_LIMIT = 1_000_000
LINES, LINE_LIMIT = 2, 120
"""Maximum number of own lines that are shown of a failure, and their length in characters."""
STARTUP_FILES = ("sitecustomize", "usercustomize", "conftest", "tests")
OUTCOMES = ("passed", "failed", "skipped")
STATUSES = (0, 1, -6, -9, -11)
"""Exit statuses that are told; graded code could spell out a secret with all of them."""
CLASS = re.compile(r"^[ \t]*class[ \t]+(\w+)", re.MULTILINE)


def report(nonce: str, **said: object) -> None:
    """One line that only who knows the nonce can write."""
    sys.stdout.write(f"\n{nonce} {json.dumps(said)}\n")
    sys.stdout.flush()


def read_sources(workdir: Path) -> dict[str, str]:
    """The Python files of the repository, before anything of it has run; bytes as Latin-1."""
    found: dict[str, str] = {}
    for folder, folders, names in os.walk(workdir):
        folders.sort()
        for path in (Path(folder, name) for name in sorted(names) if name.endswith(".py")):
            with contextlib.suppress(OSError):
                about = path.lstat()
                if stat.S_ISREG(about.st_mode) and about.st_size <= SOURCE_LIMIT:
                    found[path.relative_to(workdir).as_posix()] = path.read_bytes().decode("latin-1")
    return found


class OwnSource:
    """The graded source as it was before it ran: what may be shown of a failure is looked up here."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files
        self._classes = {name for text in files.values() for name in CLASS.findall(text)}

    def describe(self, said: dict[str, Any]) -> dict[str, Any]:
        """The kind of an exception, if it is Python's or a class of the source, and lines of the source."""
        kind = getattr(builtins, str(said.get("kind")), None)
        known = isinstance(kind, type) and issubclass(kind, BaseException)
        lines = [self._line(each) for each in (said.get("lines") or [])[-LINES:]]
        own = str(said.get("kind")) in self._classes
        return {"kind": str(said["kind"]) if known or own else "", "lines": [line for line in lines if line]}

    def _line(self, said: list[Any]) -> str:
        name, number = said
        lines = self._files.get(name, "").split("\n") if isinstance(name, str) else []
        if not (isinstance(number, int) and 0 < number <= len(lines)):
            return ""
        text = lines[number - 1].encode("latin-1").decode("utf-8", "replace").strip()[:LINE_LIMIT]
        return f"{name}:{number}: {text}"


def hide_from_siblings() -> None:
    """Closes /proc/<pid>/mem and fd to this user's other processes where the system can (PR_SET_DUMPABLE)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def apply(applier: Path, patch: Path, workdir: Path) -> tuple[str, str]:
    """Applies the graded patch; why it is refused, and notes on it. Where it cannot be tried, this program ends."""
    spec = importlib.util.spec_from_file_location("apply_patch", applier)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    try:
        said = module.main(patch.resolve(), workdir.resolve())
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return f"it cannot be applied ({type(error).__name__})", ""
    word, _, rest = said.partition(" ")
    if word not in ("applied", "refused"):
        sys.exit(f"the patch could not be tried: {said}")
    return (rest or "git gives no reason", "") if word == "refused" else ("", rest)


def remove_shadows(start: Path, workdir: Path) -> None:
    """Takes away what the patch added at the root under the name of the tests, or of a module that Python has."""
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
    """One process that runs the tests of one module, and what it said of them."""

    def __init__(self, module: str, tests: list[str]) -> None:
        self.module = module
        self.tests = tests
        self.outcomes: dict[str, str] = {}
        self.failures: dict[str, dict[str, Any]] = {}
        self.problem = ""
        self.arguments: list[str] = []
        """Further arguments of the program."""
        self._nonce = secrets.token_hex(16)
        self._controls = [secrets.token_hex(16), secrets.token_hex(16)]
        self._head = bytearray()
        self._tail = bytearray()
        self._results = bytearray()

    def run(self, program: str, given: dict[str, Any], timeout_s: float) -> None:
        """Runs the tests and kills what is left of their process group."""
        readable, writable = os.pipe()
        process = subprocess.Popen(
            [sys.executable, "-s", "-B", "-u", "-c", program, str(writable), *self.arguments],
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
        own = {"nonce": self._nonce, "module": self.module, "tests": self.tests, "controls": self._controls}
        exit_code: int | None = None
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            process.stdin.write(json.dumps({**given, **own}).encode("utf-8"))
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
        end = False
        controls: set[str] = set()
        for said in self._said():
            end = end or "end" in said
            if said.get("test") in self._controls and said["outcome"] == "failed":
                controls.add(said["test"])
            if said.get("test") in self.tests:
                first = said["test"] not in self.outcomes
                outcome = said["outcome"] if said["outcome"] in OUTCOMES else "failed"
                self.outcomes[said["test"]] = outcome if first else "reported twice"
                if isinstance(said.get("error"), dict):
                    self.failures[said["test"]] = said["error"]
        if exit_code is None:
            self.problem = f"the tests of {self.module} did not end in time"
        elif not end or exit_code:
            status = exit_code if exit_code in STATUSES else "neither 0 nor 1"
            self.problem = f"the tests of {self.module} ended early (exit status {status})"
            self.outcomes = dict.fromkeys(self.outcomes, "failed") if end else self.outcomes
        if len(controls) < len(self._controls) and (end or len(self.outcomes) == len(self.tests)):
            self.problem = f"the tests of {self.module} were tampered with: one that must fail did not"
            self.outcomes = dict.fromkeys(self.outcomes, "failed")

    def _said(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for line in bytes(self._results).decode("utf-8", "replace").split("\n"):
            nonce, _, text = line.partition(" ")
            if nonce == self._nonce:
                # Who knows the number may write anything under it.
                with contextlib.suppress(ValueError, RecursionError):
                    said = json.loads(text)
                    found += [said] if isinstance(said, dict) and is_outcome(said) else []
        return found

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


def is_outcome(said: dict[str, Any]) -> bool:
    """Return whether a line says what became of one test, or that the process is at its end."""
    return "end" in said or (isinstance(said.get("test"), str) and isinstance(said.get("outcome"), str))
