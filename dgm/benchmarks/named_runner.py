"""Lays out a workspace and runs its named tests inside the sandbox; standard library only (Python >= 3.9).

dgm does not import it but puts it into the sandbox as a file, beside ``exam_runner.py``, whose parts it uses. The host
says what is restored, what is laid over it, and which tests run. Only the child (``named_child.py``) imports the
repository.
"""

from __future__ import annotations

import base64
import contextlib
import fnmatch
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dgm.benchmarks import exam_runner
else:
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import exam_runner

SURVEY_BYTES = 64_000_000
NO_TEST = "(a test that was not reached)"


def main() -> None:
    """Read the assignment, prepare the workspace, run the tests in one child, report once."""
    exam_runner.hide_from_siblings()
    here = Path(__file__).resolve().parent
    program = (here / "named_child.py").read_text(encoding="utf-8")
    task = json.load(sys.stdin)
    workdir, place = Path(task["workdir"]), Path(task["place"])
    # Packages of the task are looked up last, so that none of them can break this program.
    sys.path += [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *task["pytest"][:1]]
    exam_runner.report(task["nonce"], stage="python", version="{}.{}".format(*sys.version_info[:2]))
    shutil.copytree(place / "start", workdir, symlinks=True, dirs_exist_ok=True)
    refusal, notes = exam_runner.apply(place / "runner" / "apply_patch.py", place / "patch", workdir)
    if refusal:
        exam_runner.report(task["nonce"], stage="refused", reason=refusal)
        return
    exam_runner.report(task["nonce"], stage="prepared", notes=notes)
    hidden = {*listed(place / "hidden")}
    lay_out(place, workdir, task)
    sources = exam_runner.read_sources(workdir)
    tests = {
        name: text for name, text in sources.items() if name in hidden or matches(name, task["restored"])
    }
    own = exam_runner.OwnSource({name: text for name, text in sources.items() if name not in tests})
    began = time.monotonic()
    run = TestProcess(task["tests"])
    run.arguments = task["pytest"]
    paths = [str(workdir), *(str(workdir / root) for root in task["roots"])]
    given = {**task["child"], "workdir": task["workdir"], "paths": paths, "survey": task["tests"] is None}
    run.run(program, {**given, "sources": tests}, task["timeout_s"])
    done = {
        "outcomes": run.outcomes,
        "failures": {test: own.describe(said) for test, said in run.failures.items()},
        "problem": run.problem,
        "messages": run.messages,
        "broken": run.broken,
        "foreign": run.foreign,
    }
    text = base64.b64encode(run.log()[: exam_runner.LOG_LIMIT]).decode("ascii")
    exam_runner.report(task["nonce"], stage="done", **done, log=text, seconds=time.monotonic() - began)


def lay_out(place: Path, workdir: Path, task: dict[str, Any]) -> None:
    """Remove modules that would stand before Python's own, and put tests and configuration back."""
    for path in ["", *task["roots"]]:
        if (workdir / path).is_dir() and not (workdir / path).is_symlink():
            exam_runner.remove_shadows(place / "start" / path, workdir / path)
    put_back(place, workdir, task)


def put_back(place: Path, workdir: Path, task: dict[str, Any]) -> None:
    """Put test and configuration files back as they were, lay the hidden ones over them, remove what is deleted."""
    start, hidden = place / "start", place / "hidden"
    for name in listed(workdir):
        if matches(name, task["restored"]):
            exam_runner.remove(workdir / name)
    for name in listed(start):
        if matches(name, task["restored"]):
            copy(start / name, workdir / name)
    for name in listed(hidden):
        copy(hidden / name, workdir / name)
    for name in task["deleted"]:
        exam_runner.remove(workdir / name)
    # Nothing that a graded program could read or change before a later test runs.
    shutil.rmtree(place, ignore_errors=True)


def listed(folder: Path) -> list[str]:
    """Return the names of all files and links below a folder."""
    found = []
    for here, folders, names in os.walk(folder):
        links = [name for name in folders if os.path.islink(os.path.join(here, name))]  # noqa: PTH114, PTH118
        found += [Path(here, name).relative_to(folder).as_posix() for name in [*names, *links]]
    return sorted(found)


def matches(name: str, patterns: list[str]) -> bool:
    """Return whether a pattern names the file, its path, or a folder around it."""
    parts = name.split("/")
    paths = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    return any(
        fnmatch.fnmatchcase(path if "/" in pattern else part, pattern)
        for pattern in patterns
        for path, part in zip(paths, parts)  # noqa: B905  (Python 3.9)
    )


def copy(source: Path, target: Path) -> None:
    """Copy a file or a link in the place of whatever stands there, or stands in the way."""
    for parent in reversed(target.parents):
        if parent.is_symlink() or parent.is_file():
            exam_runner.remove(parent)
    exam_runner.remove(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target, follow_symlinks=False)


class TestProcess(exam_runner.ModuleRun):
    """One process that runs all tests, and what it said of them; without names, of every test that it found."""

    def __init__(self, tests: list[str] | None) -> None:
        super().__init__("the repository", tests or [])
        self._survey = tests is None
        self.messages: dict[str, str] = {}
        self.broken: dict[str, str] = {}
        self.foreign: list[str] = []

    def run(self, program: str, given: dict[str, Any], timeout_s: float) -> None:
        """Run the tests; None as their names asks for all."""
        super().run(program, given, timeout_s)
        for said in self._lines():
            if "foreign" in said:
                self.foreign.append(str(said["foreign"]))
            elif "broken" in said:
                self.broken[str(said["broken"])] = str(said.get("message"))
            elif said.get("message") and said.get("test") not in self._controls:
                self.messages[str(said["test"])] = str(said["message"])

    def _believe(self, exit_code: int | None) -> None:
        if self._survey:
            names = [str(said.get("test")) for said in self._lines() if "test" in said]
            # A survey that does not come to its end keeps what it has told: no list says which tests are missing.
            ended = any("end" in said for said in self._lines())
            found = dict.fromkeys(name for name in names if name not in self._controls)
            self.tests = [*found, *([] if ended else [NO_TEST])]
        super()._believe(exit_code)

    def _lines(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for line in bytes(self._results).decode("utf-8", "replace").split("\n"):
            nonce, _, text = line.partition(" ")
            if nonce == self._nonce:
                with contextlib.suppress(ValueError, RecursionError):
                    said = json.loads(text)
                    found += [said] if isinstance(said, dict) else []
        return found

    def _collect(self, data: bytes) -> None:
        most = SURVEY_BYTES if self._survey else exam_runner.RESULT_LIMIT
        self._results += data[: max(0, most - len(self._results))]


if __name__ == "__main__":
    main()
