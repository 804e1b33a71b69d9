"""Builds and tests one exercise inside the sandbox; standard library only (Python >= 3.9).

dgm does not import it but puts it into the sandbox as a file. It knows no language: what is laid out, which
programs run and which of their output counts is all in the assignment. What it finds goes out under a nonce that the
programs are not told of.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

HALF = 20_000
"""Bytes kept of the start and of the end of a program's output."""
RESULTS = 4_000_000
"""Bytes kept of what says how tests ended."""
LINE = 65_536


def main() -> None:
    """Reads the assignment, lays the exercise out, runs the steps, reports each once."""
    hide_from_siblings()
    task = json.load(sys.stdin)
    place, workdir = Path(task["place"]), Path(task["workdir"])
    refusal, notes = lay_out(place, workdir, task["solution"])
    shutil.rmtree(place / "exam", ignore_errors=True)
    if refusal:
        report(task["nonce"], stage="refused", reason=refusal)
        return
    Path(task["scratch"]).mkdir(parents=True)
    report(task["nonce"], stage="prepared", notes=notes)
    for step in task["steps"]:
        done = Step(step, task["mark"].encode())
        done.run(workdir)
        report(task["nonce"], stage=step["name"], **done.said())
        if done.exit_code != 0:
            break
    report(task["nonce"], stage="done", results=encoded(results(task["results"])))


def report(nonce: str, **said: object) -> None:
    """One line that only who knows the nonce can write."""
    sys.stdout.write(f"\n{nonce} {json.dumps(said)}\n")
    sys.stdout.flush()


def encoded(data: bytes) -> str:
    """Bytes as JSON can hold them."""
    return base64.b64encode(data).decode("ascii")


def hide_from_siblings() -> None:
    """Closes /proc/<pid>/mem and fd to this user's other processes where the system can (PR_SET_DUMPABLE)."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def lay_out(place: Path, workdir: Path, solution: list[str]) -> tuple[str, str]:
    """The pristine exercise with its tests, and the solution files as the patch leaves them; or why not. And notes."""
    exam = place / "exam"
    shutil.copytree(exam / "start", exam / "answer", symlinks=True)
    refusal, notes = apply(place / "apply_patch.py", exam / "patch", exam / "answer")
    if refusal:
        return "the patch does not apply: " + refusal, ""
    shutil.copytree(exam / "start", workdir, symlinks=True, dirs_exist_ok=True)
    shutil.copytree(exam / "tests", workdir, symlinks=True, dirs_exist_ok=True)
    for name in solution:
        given, wanted = exam / "answer" / name, workdir / name
        if not inside(given, exam / "answer"):
            return f"the solution file {name} is a link", ""
        if not given.is_file():
            return f"the solution file {name} is gone", ""
        wanted.parent.mkdir(parents=True, exist_ok=True)
        wanted.write_bytes(given.read_bytes())
    return "", notes


def inside(path: Path, root: Path) -> bool:
    """Whether no part of the path is a link."""
    return not any(part.is_symlink() for part in (path, *path.parents) if root in part.parents)


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


class Step:
    """One program: its process group ends with it or at its time, whatever it started in the group."""

    def __init__(self, step: Mapping[str, Any], mark: bytes) -> None:
        self._step = step
        self._mark = mark
        self.exit_code: int | None = None
        self._head = bytearray()
        self._tail = bytearray()
        self._marked = bytearray()
        self._line = bytearray()

    def run(self, workdir: Path) -> None:
        """Runs it to its end."""
        step = self._step
        began = time.monotonic()
        try:
            process = subprocess.Popen(
                step["argv"],
                cwd=step.get("cwd", workdir),
                env={**os.environ, **step["env"]},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            self._keep(f"{step['argv'][0]}: {error.strerror}\n".encode())
            self.exit_code = 127
            return
        assert process.stdout
        reader = threading.Thread(target=self._drain, args=(process.stdout.fileno(),), daemon=True)
        reader.start()
        with contextlib.suppress(subprocess.TimeoutExpired, BrokenPipeError):
            assert process.stdin
            process.stdin.write(step.get("stdin", "").encode())
            process.stdin.close()
            self.exit_code = process.wait(max(0.1, step["timeout_s"] - (time.monotonic() - began)))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # A process that left the group can hold the pipe open; what it has to say does not count.
        reader.join(2)

    def said(self) -> dict[str, object]:
        """What is reported of it."""
        cut = b"\n[...]\n" if len(self._tail) == HALF else b""
        return {
            "exit_code": self.exit_code,
            "output": encoded(bytes(self._head + cut + self._tail)),
            "marked": encoded(bytes(self._marked)),
        }

    def _drain(self, fd: int) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(fd, 65536):
                self._keep(data)
                self._sift(data)
        self._sift(b"\n")

    def _keep(self, data: bytes) -> None:
        room = max(0, HALF - len(self._head))
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[:-HALF]

    def _sift(self, data: bytes) -> None:
        """Keeps the lines that hold the mark, however much stands between them."""
        lines = (bytes(self._line) + data).split(b"\n")
        self._line = bytearray(lines.pop()[-LINE:])
        for line in lines:
            if self._mark in line and len(self._marked) < RESULTS:
                self._marked += line[-LINE:] + b"\n"


def results(pattern: str | None) -> bytes:
    """The files that the test programs were told to leave their results in."""
    found = bytearray()
    if pattern:
        path = Path(pattern)
        files = sorted(path.glob("*.xml")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and not file.is_symlink():
                with file.open("rb") as stream:
                    found += stream.read(RESULTS - len(found)) + b"\n\0\n"
    return bytes(found)


if __name__ == "__main__":
    main()
