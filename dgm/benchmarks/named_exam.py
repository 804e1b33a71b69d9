"""Grading by tests that a task names: one fresh sandbox, one child that imports the repository.

The sandbox's side is ``named_runner.py``; for tools of other languages ``tool_runner.py``. Only its own process knows
the nonce between the two sides, so that no output of the graded code can pass for its report. A survey is the same run
without names: it tells every test that it finds.
"""

import base64
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from dgm.benchmarks.command_results import read_command
from dgm.benchmarks.command_tools import BY_COMMAND, REPORT
from dgm.benchmarks.environments import Environment
from dgm.benchmarks.grading import LOG_LIMIT, judge_outcomes, mask_hidden_lines, show_failures
from dgm.benchmarks.named_tests import NamedTests, is_restored
from dgm.benchmarks.plain_logs import plain_log
from dgm.benchmarks.prediction_patches import APPLIER, normalised_patch, with_notes
from dgm.benchmarks.report_results import read_reports
from dgm.benchmarks.runners import PYTEST, RUNNERS
from dgm.benchmarks.sandbox_report import (
    check_prepared,
    describe_ending,
    put_graded_files,
    read_stages,
    unresolved,
)
from dgm.benchmarks.suite_files import IN_ENGINE, Limits
from dgm.benchmarks.unit_exam import CHILD, PLACE, RUNNER, Failure
from dgm.domain import Entry, Snapshot
from dgm.errors import UserError
from dgm.protocols import Completed, Grade, SandboxEngine, SandboxSpec

PROGRAMS = (
    RUNNER,
    CHILD,
    APPLIER,
    *(Path(__file__).with_name(f"named_{each}.py") for each in ("runner", "child")),
)
"""Files of dgm that run in the sandbox."""
SETUP_S = 60.0
PIDS = 512
OUTPUT_LIMIT = 2_000_000
SURVEY_OUTPUT = 128_000_000
SURVEY_PROCESSORS = 4
"""Processors that a survey may keep busy for all of its time."""
COVERAGE = "/tmp/dgm-coverage"
COVERAGE_BYTES = 400_000_000


@dataclass(frozen=True, slots=True)
class NamedExam:
    """The inputs for grading a patch by named tests."""

    workspace: Snapshot
    hidden: Snapshot
    """Files laid over the workspace before the tests, by their paths in it."""
    tests: NamedTests
    limits: Limits
    environment: Environment | None = None

    @property
    def roots(self) -> tuple[str, ...]:
        """Folders of the workspace from which modules are imported."""
        return self.environment.roots if self.environment else (".",)


@dataclass(frozen=True, slots=True)
class Survey:
    """A run that tells every test that it finds, with pytest's reports on failures."""

    files: tuple[str, ...] = ()
    """Files whose tests run; none: all that pytest finds."""
    only: tuple[str, ...] = ()
    """Tests that run; none: all of the files."""
    most_failures: int = 0
    """Number of failures after which pytest stops; 0: it goes on."""
    coverage: bool = False
    """Note the lines that each test reaches; needs the package ``coverage``."""


@dataclass(frozen=True, slots=True)
class NamedRun:
    """The results of one sandbox."""

    outcomes: Mapping[str, str] = field(default_factory=dict)
    """Test → ``passed``, ``failed`` or ``skipped``; a test that was not reported is missing."""
    failures: Mapping[str, Failure] = field(default_factory=dict)
    messages: Mapping[str, str] = field(default_factory=dict)
    """Test → pytest's report on its failure; in a survey only."""
    broken: Mapping[str, str] = field(default_factory=dict)
    """Test file that could not be imported → pytest's report."""
    foreign: tuple[str, ...] = ()
    """Modules of the project that were imported from elsewhere than the workspace."""
    problem: str = ""
    """Why the results do not count as they are; empty if they do."""
    log: bytes = b""
    seconds: float = 0.0
    """Wall time of the tests."""
    refused: str = ""
    """Why the patch does not apply."""
    notes: tuple[str, ...] = ()
    """Changes that made the patch fit, a sentence each."""
    processor_s: float = 0.0
    """Processor time of a survey; 0 if the engine cannot measure it."""
    coverage: bytes = b""
    """coverage's data file with a context for each test, if a survey asked for it."""


def own_modules(workspace: Snapshot, roots: Sequence[str], tests: Sequence[str]) -> frozenset[str]:
    """Return the top-level modules and packages of a project, without its tests."""
    found = set()
    for root in roots:
        prefix = "" if root == "." else f"{root}/"
        for name in workspace:
            top, inside, _ = name.removeprefix(prefix).partition("/")
            if name.startswith(prefix) and name.endswith(".py") and not is_restored(name, tests):
                regular = not inside or f"{prefix}{top}/__init__.py" in workspace
                found |= (
                    {top.removesuffix(".py")} if regular and top.removesuffix(".py").isidentifier() else set()
                )
    return frozenset(found - {"setup", "docs", "examples"})


async def run_named(
    exam: NamedExam,
    patch: bytes,
    engine: SandboxEngine,
    labels: Mapping[str, str],
    survey: Survey | None = None,
) -> NamedRun:
    """Run the named tests on a patched workspace in a fresh sandbox.

    Args:
        exam: what is run.
        patch: on the workspace; nothing is applied if it is empty.
        engine: opens the sandbox.
        labels: of the sandbox.
        survey: what runs instead of the named tests.

    Raises:
        Infrastructure: the sandbox failed, or the runner in it before any graded code had run.
        UserError: the sandbox has another Python than the environment is for.
    """
    nonce, tests = secrets.token_hex(16), exam.tests
    limit = exam.limits.test_timeout_s + SETUP_S
    shown = exam.environment.shown(exam.limits.workdir) if exam.environment else None
    spec = SandboxSpec(
        exam.limits.image,
        labels,
        mounts=(shown.mount,) if shown else (),
        cpus=tests.cpus,
        memory_mb=tests.memory_mb,
        pids=PIDS,
        disk_mb=tests.disk_mb,
        lifetime_s=limit + SETUP_S,
    )
    async with engine.open(spec) as sandbox:
        await put_graded_files(sandbox, _exam_files(exam, patch), PLACE)
        completed = await sandbox.exec(
            [
                "python3",
                "-E",
                "-s",
                "-B",
                f"{PLACE}/runner/{RUNNERS[tests.runner].program}",
            ],
            timeout_s=limit,
            cwd="/job",
            env={
                "PYTHONHASHSEED": "0",
                "PYTHONDONTWRITEBYTECODE": "1",
                "HOME": "/tmp",
                "LC_ALL": "C.UTF-8",
                **dict(tests.env),
                **(
                    {"PYTHONPATH": ":".join(exam.environment.python_path)}
                    if exam.environment and tests.runner == PYTEST
                    else {}
                ),
                **({"DGM_PACKAGES": shown.mount.target} if shown and tests.runner in BY_COMMAND else {}),
            },
            stdin=json.dumps(_assignment(exam, nonce, survey)).encode(),
            output_limit=OUTPUT_LIMIT if survey is None else SURVEY_OUTPUT,
            processor_s=None if survey is None else SURVEY_PROCESSORS * limit,
        )
        run = _read_run(exam, completed, nonce)
        run = replace(run, processor_s=completed.processor_s or 0.0)
        if survey and survey.coverage and not run.problem:
            found = await sandbox.get(COVERAGE, limit_bytes=COVERAGE_BYTES)
            run = replace(run, coverage=found["data"].data if "data" in found else b"")
    return run


def _assignment(exam: NamedExam, nonce: str, survey: Survey | None) -> Mapping[str, Any]:
    tests = exam.tests
    return {
        "nonce": nonce,
        "place": PLACE,
        "workdir": exam.limits.workdir,
        "tests": tests.names if survey is None else None,
        "restored": tests.restored,
        "deleted": tests.deleted,
        "roots": [root for root in exam.roots if root != "."],
        "timeout_s": exam.limits.test_timeout_s,
        "tool": {
            "kind": tests.runner,
            "files": tests.files if survey is None else survey.files,
            "options": tests.options,
            "flags": tests.flags,
            "patterns": tests.patterns,
            "build": tests.build,
            "command": tests.command,
            "parts": tests.parts,
            "reports": tests.reports,
            "env": tests.env,
            "limit_s": tests.limit_s,
        },
        "child": {
            "files": tests.files if survey is None else survey.files,
            "only": survey.only if survey else (),
            "most_failures": survey.most_failures if survey else 0,
            "coverage": COVERAGE if survey and survey.coverage else "",
            "options": tests.options,
            "limit_s": tests.limit_s,
            # A recipe's sandbox has other packages in Docker than in bubblewrap.
            "sealed": exam.environment is not None and not exam.limits.image.startswith(IN_ENGINE),
            "tops": sorted(own_modules(exam.workspace, exam.roots, tests.restored)),
        },
    }


def _exam_files(exam: NamedExam, patch: bytes) -> Snapshot:
    files = {"patch": Entry(patch), **{f"runner/{file.name}": Entry(file.read_bytes()) for file in PROGRAMS}}
    runner = RUNNERS[exam.tests.runner]
    files |= {f"runner/{file.name}": Entry(file.read_bytes()) for file in runner.programs}
    files |= {f"runner/test_tools/{file.name}": Entry(file.read_bytes()) for file in runner.parts}
    files |= {f"start/{name}": entry for name, entry in exam.workspace.items()}
    return files | {f"hidden/{name}": entry for name, entry in exam.hidden.items()}


def _put_back(exam: NamedExam) -> Snapshot:
    """Return the files of tests and configuration that every graded workspace has."""
    files = {name: entry for name, entry in exam.workspace.items() if is_restored(name, exam.tests.restored)}
    return {name: entry for name, entry in {**files, **exam.hidden}.items() if name not in exam.tests.deleted}


def _read_run(exam: NamedExam, completed: Completed, nonce: str) -> NamedRun:
    said = read_stages(completed.output, nonce)
    if (
        exam.environment
        and exam.environment.python
        and "python" in said
        and said["python"]["version"] != exam.environment.python
    ):
        version = said["python"]["version"]
        raise UserError(
            f"{exam.environment.packages.parent}: made for Python {exam.environment.python}, but the sandbox image "
            f"{exam.limits.image!r} has {version}; use the sandbox it was mined with, or mine the suite again"
        )
    if "refused" in said:
        return NamedRun(refused=said["refused"]["reason"])
    check_prepared(said, completed)
    if "done" not in said:
        return NamedRun(problem=describe_ending(completed))
    done = said["done"]
    if exam.tests.runner in BY_COMMAND:
        outcomes = (
            read_reports(done["command"], _put_back(exam), exam.limits.workdir)
            if exam.tests.runner == REPORT
            else read_command(done["command"])
        )
        done = {**done, "failures": {}, "foreign": (), **asdict(outcomes)}
    return NamedRun(
        outcomes=done["outcomes"],
        failures={
            name: Failure(each["kind"], tuple(each["lines"])) for name, each in done["failures"].items()
        },
        messages=done["messages"],
        broken=done["broken"],
        foreign=tuple(done["foreign"]),
        problem=done["problem"],
        log=plain_log(base64.b64decode(done["log"])),
        seconds=done["seconds"],
        notes=tuple(filter(None, str(said["prepared"]["notes"]).split("; "))),
    )


async def examine(exam: NamedExam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str]) -> Grade:
    """Grade a patch by running the named tests, even for an empty patch, for which nothing is applied.

    Raises:
        Infrastructure: the sandbox failed, or the runner in it before any graded code had run.
        UserError: the sandbox has another Python than the environment is for.
    """
    given = normalised_patch(patch)
    run = await run_named(exam, given.data, engine, labels)
    if run.refused:
        return with_notes(unresolved(f"the patch does not apply: {run.refused}"), given.notes)
    graded = judge(exam.tests, run)
    log = mask_hidden_lines(run.log, exam.hidden)[:LOG_LIMIT]
    graded = replace(graded, log=log, shown=show_failures(graded.failed, run.failures))
    return with_notes(graded, (*given.notes, *run.notes))


def judge(tests: NamedTests, run: NamedRun) -> Grade:
    """Return the meaning of the tests' outcomes."""
    outside = f"imported from outside of the workspace: {run.foreign[0]}" if run.foreign else ""
    return judge_outcomes(tests.fail_to_pass, tests.pass_to_pass, run.outcomes, run.problem or outside)
