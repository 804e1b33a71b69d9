"""The run of a task's unit tests on a patch: which modules share a sandbox, and what became of each test.

The sandbox's side is ``exam_runner.py``. Each module with hidden tests has a fresh sandbox; the visible ones share one.
Only the runner's own process knows the nonce between the two sides, so that no output of the graded code can pass for
its report. What outcomes mean is decided in ``grading`` and ``tampering``.
"""

import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dgm.benchmarks.plain_logs import plain_log
from dgm.benchmarks.prediction_patches import APPLIER
from dgm.benchmarks.results import Failure
from dgm.benchmarks.sandbox_report import check_prepared, describe_ending, put_graded_files, read_stages
from dgm.benchmarks.suite_files import Limits
from dgm.domain import Entry, Snapshot
from dgm.protocols import Completed, SandboxEngine, SandboxSpec

RUNNER = Path(__file__).with_name("exam_runner.py")
CHILD = Path(__file__).with_name("exam_child.py")
PLACE = "/job/exam"
OUTPUT_LIMIT = 1_000_000
SETUP_S = 30.0
"""Seconds that the runner may take in addition to the tests."""
SHORTEST_S = 0.5
Perturb = Literal["off", "resolved", "all"]
Modules = Mapping[str, Sequence[str]]
"""Module → full names of its tests, in the order in which they run."""


@dataclass(frozen=True, slots=True)
class Exam:
    """The inputs for grading a patch by unit tests."""

    workspace: Snapshot
    hidden: Snapshot
    fail_to_pass: Sequence[str]
    pass_to_pass: Sequence[str]
    limits: Limits
    reference: bytes = b""
    """The reference fix as a patch; it confirms that a test with a changed value fails for honest code."""
    perturb: Perturb = "off"
    """Which patches are graded once more against changed tests (``GradingSettings``)."""

    def modules(self) -> Modules:
        """Return the tests by module, those that must be mended first."""
        found: dict[str, list[str]] = {}
        for test in (*self.fail_to_pass, *self.pass_to_pass):
            found.setdefault(test.rsplit(".", 2)[0], []).append(test)
        return found

    def groups(self) -> Sequence[Modules]:
        """Return the modules by sandbox: each with hidden tests alone, first; the visible ones together."""
        modules = self.modules()
        apart = [{module: tests} for module, tests in modules.items() if self.hidden_file(module)]
        shared = {module: tests for module, tests in modules.items() if not self.hidden_file(module)}
        return [*apart, *([shared] if shared else [])]

    def visible_file(self, module: str) -> str:
        """Return the name of the workspace's file that is this module of tests; empty if there is none."""
        stem = module.replace(".", "/")
        names = (f"{stem}.py", f"{stem}/__init__.py") if module.startswith("tests.") else ()
        return next((name for name in names if name in self.workspace), "")

    def hidden_file(self, module: str) -> str:
        """Return the name of the hidden file that is this module; empty if there is none."""
        stem = "/".join(module.split(".")[1:])
        names = (f"{stem}.py", f"{stem}/__init__.py") if module.startswith("tests.") else ()
        return next((name for name in names if name in self.hidden), "")


@dataclass(frozen=True, slots=True)
class TestRun:
    """The results of one or several sandboxes."""

    outcomes: Mapping[str, str] = field(default_factory=dict)
    """Test → ``passed``, ``failed`` or ``skipped``; a test that was not reported is missing."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    """One line for each module that did not end as it must."""
    log: bytes = b""
    seconds: float = 0.0
    """Wall time of the tests."""
    refused: str = ""
    """Reason why the patch does not apply."""
    ending: str = ""
    """The way in which the graded code ended the runner; empty if it did not."""
    notes: tuple[str, ...] = ()
    """Changes that made the patch fit, a sentence each."""

    def plus(self, later: "TestRun") -> "TestRun":
        """Return both runs as one."""
        return TestRun(
            {**self.outcomes, **later.outcomes},
            {**self.failures, **later.failures},
            (*self.problems, *later.problems),
            self.log + later.log,
            self.seconds + later.seconds,
            self.refused or later.refused,
            self.ending or later.ending,
            self.notes or later.notes,
        )


async def run_modules(
    exam: Exam,
    patch: bytes,
    modules: Modules,
    engine: SandboxEngine,
    labels: Mapping[str, str],
    *,
    timeout_s: float,
) -> TestRun:
    """Run some modules in one fresh sandbox.

    Raises:
        Infrastructure: the sandbox failed, or the runner in it before any graded code had run.
    """
    nonce, limit = secrets.token_hex(16), timeout_s + SETUP_S
    assignment = {
        "nonce": nonce,
        "place": PLACE,
        "workdir": exam.limits.workdir,
        "modules": {module: list(tests) for module, tests in modules.items()},
        "timeout_s": timeout_s,
    }
    spec = SandboxSpec(image=exam.limits.image, labels=labels, lifetime_s=limit + SETUP_S)
    async with engine.open(spec) as sandbox:
        await put_graded_files(sandbox, _exam_files(exam, patch), PLACE)
        completed = await sandbox.exec(
            ["python3", "-s", "-B", f"{PLACE}/runner/{RUNNER.name}"],
            timeout_s=limit,
            cwd="/job",
            env={"PYTHONHASHSEED": "0", "HOME": "/tmp", "LC_ALL": "C.UTF-8"},
            stdin=json.dumps(assignment).encode(),
            output_limit=OUTPUT_LIMIT,
        )
    return _read_run(completed, read_stages(completed.output, nonce), modules)


def _exam_files(exam: Exam, patch: bytes) -> Snapshot:
    programs = {f"runner/{file.name}": Entry(file.read_bytes()) for file in (RUNNER, CHILD, APPLIER)}
    files = {"patch": Entry(patch), **programs}
    files |= {f"start/{name}": entry for name, entry in exam.workspace.items()}
    return files | {f"hidden/{name}": entry for name, entry in exam.hidden.items()}


def _read_run(completed: Completed, said: Mapping[str, Mapping[str, Any]], modules: Modules) -> TestRun:
    if "refused" in said:
        return TestRun(refused=said["refused"]["reason"])
    check_prepared(said, completed)
    if "done" not in said:
        return TestRun(ending=describe_ending(completed))
    done = TestRun(
        log=plain_log(base64.b64decode(said["done"]["log"])),
        seconds=said["done"]["seconds"],
        notes=tuple(filter(None, str(said["prepared"]["notes"]).split("; "))),
    )
    for each in said["done"]["modules"]:
        listed = modules[each["module"]]
        outcomes = {test: each["outcomes"][test] for test in listed if test in each["outcomes"]}
        failures = {
            test: Failure(each["failures"][test]["kind"], tuple(each["failures"][test]["lines"]))
            for test in listed
            if test in each["failures"]
        }
        done = done.plus(TestRun(outcomes, failures, tuple(filter(None, [each["problem"]]))))
    return done
