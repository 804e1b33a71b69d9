"""Asks the swebench package, in a process of its own: importing it takes seconds, and it is not always installed.

One long-lived worker answers for a whole run, one question at a time. A worker that dies or hangs takes its question
with it, and the next question starts another. What the answers mean is left to ``swebench_verdicts``.
"""

import contextlib
import json
import os
import site
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.errors import Infrastructure, UserError
from dgm.processes import start_apart

WORKER = Path(__file__).with_name("swebench_worker.py")
INSTALL = "pip install 'dgm[swebench]'"
STARTS_WITHIN_S = 180.0
ANSWERS_WITHIN_S = 120.0
LAST_WORDS = "stderr"
PARSER_OF_REPO: Mapping[str, str] = {
    "astropy/astropy": "parse_log_astropy",
    "django/django": "parse_log_django",
    "marshmallow-code/marshmallow": "parse_log_marshmallow",
    "matplotlib/matplotlib": "parse_log_matplotlib",
    "mwaskom/seaborn": "parse_log_seaborn",
    "pallets/flask": "parse_log_flask",
    "psf/requests": "parse_log_requests",
    "pvlib/pvlib-python": "parse_log_pvlib",
    "pydata/xarray": "parse_log_xarray",
    "pydicom/pydicom": "parse_log_pydicom",
    "pylint-dev/astroid": "parse_log_astroid",
    "pylint-dev/pylint": "parse_log_pylint",
    "pytest-dev/pytest": "parse_log_pytest",
    "pyvista/pyvista": "parse_log_pyvista",
    "scikit-learn/scikit-learn": "parse_log_scikit",
    "sphinx-doc/sphinx": "parse_log_sphinx",
    "sqlfluff/sqlfluff": "parse_log_sqlfluff",
    "sympy/sympy": "parse_log_sympy",
}
"""For instances that name none: the package knows parsers by their names only."""


class TooLate(Infrastructure):
    """The worker did not answer in time, and was killed."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What the package's parser reads in a log."""

    statuses: Mapping[str, str]
    """Test → PASSED, FAILED, ERROR, SKIPPED or XFAIL."""
    unreadable: str = ""
    """Why the parser could not read the log; empty where it could."""


class Parsers:
    """The worker's door; share one between all gradings of a run, in any threads and event loops.

    The worker ends with ``close``, or with this process.

    Args:
        python: an interpreter that has the swebench package; default: the one that runs dgm.
        answers_within_s: longer than any parser takes for a log of a few MB that was not written to hold it up.
    """

    def __init__(self, python: str = sys.executable, answers_within_s: float = ANSWERS_WITHIN_S) -> None:
        self._python = python
        self._answers_within_s = answers_within_s
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.version = ""
        """Of the package; known after the first question."""

    def close(self) -> None:
        """Ends the worker; a later question would start another."""
        with self._turn:
            self._end()

    def statuses(self, row: Mapping[str, str], log: Path) -> Parsed:
        """What the tests of an instance came to, by the log between the markers. Blocks for a second or so.

        Args:
            row: ``repo``, ``instance_id``, and ``log_parser`` (may be empty).
            log: the text; the worker reads all of it.

        Raises:
            UserError: the package is not installed, or knows no parser for the instance.
            Infrastructure: the worker died or did not answer.
        """
        try:
            said = self._ask({"ask": "statuses", "row": _named(row), "log": str(log.absolute())})
        except TooLate as error:
            # Logs are bounded: it is for what stands in this one, and would be so every time.
            return Parsed({}, unreadable=str(error))
        if "unknown" in said:
            raise UserError(self._no_parser(row))
        if "unreadable" in said:
            return Parsed({}, unreadable=said["unreadable"])
        return Parsed(said["statuses"])

    def check(self, row: Mapping[str, str]) -> None:
        """Says at once what grading would say late.

        Raises:
            UserError: the package is not installed, or knows no parser for the instance.
            Infrastructure: the worker died or did not answer.
        """
        if "unknown" in self._ask({"ask": "known", "row": _named(row)}):
            raise UserError(self._no_parser(row))

    def _no_parser(self, row: Mapping[str, str]) -> str:
        wanted = row.get("log_parser") or row["repo"]
        return (
            f"{row['instance_id']}: swebench {self.version} has no log parser for {wanted!r}; give the instance a"
            " log_parser that it has (parse_log_pytest, parse_log_django, …)"
        )

    def _ask(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        with self._turn:
            try:
                process = self._running()
                return self._exchange(process, json.dumps(question).encode() + b"\n", self._answers_within_s)
            except BaseException:
                self._end()
                raise

    def _running(self) -> "subprocess.Popen[bytes]":
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        self._folder = tempfile.TemporaryDirectory(prefix="dgm-swebench-")
        try:
            with Path(self._folder.name, LAST_WORDS).open("wb") as words:
                self._process = start_apart(
                    [self._python, "-P", str(WORKER)],
                    stderr=words,
                    cwd=_made(self._folder.name, "empty"),
                    env=_environment(self._folder.name),
                )
        except OSError as error:
            raise UserError(
                f"{self._python}: cannot be started to read test logs: {error.strerror}"
            ) from error
        try:
            said = self._exchange(self._process, b"", STARTS_WITHIN_S)
        except TooLate as error:
            raise Infrastructure(f"swebench was not imported within {STARTS_WITHIN_S:.0f} s") from error
        if "version" not in said:
            raise UserError(_not_usable(said))
        self.version = str(said["version"])
        return self._process

    def _exchange(
        self, process: "subprocess.Popen[bytes]", question: bytes, within_s: float
    ) -> Mapping[str, Any]:
        """Sends a question and takes one line of answer; the process is killed when it takes longer."""
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        alarm = threading.Timer(within_s, end)
        alarm.start()
        try:
            process.stdin.write(question)
            process.stdin.flush()
            said: Mapping[str, Any] = json.loads(process.stdout.readline())
        except (OSError, ValueError) as error:
            if late.is_set():
                raise TooLate(f"no answer within {within_s:.0f} s") from error
            raise Infrastructure(f"the process that reads test logs ended: {self._last_words()}") from error
        finally:
            alarm.cancel()
        return said

    def _last_words(self) -> str:
        assert self._folder is not None
        assert self._process is not None
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        words = (
            Path(self._folder.name, LAST_WORDS).read_bytes()[-2000:].decode("utf-8", "replace").split("\n")
        )
        lines = [line for line in words if line.strip()]
        return lines[-1] if lines else f"exit status {self._process.returncode}, and it said nothing"

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            # Waits, and closes the pipes.
            self._process.communicate()
            self._process = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _made(folder: str, name: str) -> str:
    path = Path(folder, name)
    path.mkdir()
    return str(path)


def _named(row: Mapping[str, str]) -> Mapping[str, str]:
    name = row.get("log_parser", "") or PARSER_OF_REPO.get(row["repo"], "")
    return {"repo": row["repo"], "instance_id": row["instance_id"], "log_parser": name}


def _not_usable(said: Mapping[str, str]) -> str:
    if "missing" in said:
        return f"SWE-bench is graded by the swebench package, which is not installed: {INSTALL}"
    return f"the swebench package cannot be imported ({said['broken']}): {INSTALL}"


def _environment(folder: str) -> dict[str, str]:
    """What the worker needs, and none of the host's keys."""
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
    # Packages that were installed with ``pip install --user`` are found although the home folder is another.
    kept["PYTHONUSERBASE"] = site.getuserbase()
    return {**kept, "HOME": folder, "LC_ALL": "C.UTF-8", "HF_HUB_OFFLINE": "1"}
