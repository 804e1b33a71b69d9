"""Grade a patch: a fresh sandbox, the task's start, the patch, the tests put back, the tests run, the verdict.

This is the only way from a patch to a verdict of a suite. The sandbox's side is ``sandbox_runner``: its report counts
only with an HMAC under a key that is made here for each run, so that nothing that graded code prints, or does to the
programs around it, can pass for one. A survey is the same run without names: it reports every test that it finds.
"""

import asyncio
import base64
import hmac
import json
import math
import secrets
import tempfile
import zlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dgm.archive.snapshots import write_folder
from dgm.benchmarks import own_pytest
from dgm.benchmarks.environments import Environment
from dgm.benchmarks.languages import BY_COMMAND, PLAIN, RUNNERS, Language, Results
from dgm.benchmarks.logs import OWN_KIND, plain_log
from dgm.benchmarks.prediction_patches import APPLIER, normalised_patch, with_notes
from dgm.benchmarks.results import TAMPERED, Failure, Outcomes, read_outcomes
from dgm.benchmarks.sandbox_runner import matches
from dgm.benchmarks.suite_files import IN_ENGINE, Limits
from dgm.benchmarks.test_spec import TESTS, TestSpec
from dgm.domain import MAX_COUNT, Entry, Finding, FindingKind, Metrics, Snapshot, Verdict
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.protocols import Completed, Grade, InImage, Mount, Sandbox, SandboxEngine, SandboxSpec

PLACE = "/job/exam"
LOGS = "/job/logs"
HOME = "/job/home"
SOLUTION = "/solution"
RUNNER, PLUGIN = (Path(__file__).with_name(f"{name}.py") for name in ("sandbox_runner", "named_child"))
SETUP_S = 60.0
APPLY_S = 240.0
"""Wall time in seconds for applying a patch."""
PIDS = 512
OUTPUT_LIMIT = 10_000_000
SURVEY_OUTPUT = 128_000_000
SURVEY_PROCESSORS = 4
"""Processors that a survey may keep busy for all of its time."""
COVERAGE = "/tmp/dgm-coverage"
COVERAGE_BYTES = 400_000_000
WORKSPACE_LIMIT = 200_000_000
REWARD_FILES = ("reward.txt", "reward.json")
REWARD_LIMIT = 100_000
LOG_LIMIT = 60_000
MASKED_FROM = 12
"""Minimum length of a masked line of a hidden test; shorter ones (``else:``) occur in any program."""
SHOWN_LIMIT = 4000
"""Maximum bytes of the reports on all failed tests."""
_MARK = b"\ndgm-report "
_NO_PROGRAM = {126: ": a program of theirs cannot be started", 127: ": a program of theirs is not there"}
_TOLD = (0, 1, 2, 3, 4, 5, 124, 126, 127, 134, 137, 139)
"""Exit statuses of a command that a reason tells; graded code could spell out a secret with all of them."""
_SIGNALS = range(129, 193)
"""Exit codes by which a shell says that its last command was ended by a signal."""
_ENVIRONMENT = {"HOME": HOME, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}
_EARLIER = {"DGM_APART": "env"}
"""What suites made for earlier versions call their code with: a program that runs it in a process of its own."""


@dataclass(frozen=True, slots=True)
class Exam:
    """The inputs for grading a patch."""

    workspace: Snapshot | InImage
    hidden: Snapshot
    """The task's ``tests/``: laid over the workspace by their paths in it, or shown at ``/tests``."""
    tests: TestSpec
    limits: Limits
    environment: Environment | None = None
    metrics: tuple[str, ...] = ()
    """Names of the suite's metrics."""

    @property
    def roots(self) -> tuple[str, ...]:
        """Folders of the workspace from which modules are imported."""
        return self.environment.roots if self.environment else (".",)

    @property
    def files(self) -> Snapshot:
        """The workspace's files; none if it is in an image."""
        return {} if isinstance(self.workspace, InImage) else self.workspace


@dataclass(frozen=True, slots=True)
class Survey:
    """A run that reports every test that it finds, with the reports on failures."""

    files: tuple[str, ...] = ()
    """Files whose tests run; none: all that the tool finds."""
    only: tuple[str, ...] = ()
    """Tests that run; none: all of the files."""
    most_failures: int = 0
    """Number of failures after which pytest stops; 0: it goes on."""
    coverage: bool = False
    """Note the lines that each test reaches; needs the package ``coverage``."""


@dataclass(frozen=True, slots=True)
class CommandEnd:
    """The end of a test command."""

    code: int
    """Exit code as in a shell: 128 + signal if killed."""
    signal: int = 0
    """Signal that ended the command itself; 0 if it ended by itself."""
    left: int = 0
    """Number of its processes that still ran."""
    writes: int = 0
    """Number of times that a reward was written; -1 if unknown."""
    refused: str = ""
    """Why the reward cannot be taken; empty if it can."""
    rewards: Mapping[str, bytes] = field(default_factory=dict)
    """Content of each reward file that there was when the command ended."""


@dataclass
class TestRun(Outcomes):
    """The results of one sandbox."""

    __test__ = False

    end: CommandEnd | None = None
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


async def examine(exam: Exam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str]) -> Grade:
    """Grade a patch by running the tests, even for an empty patch, for which nothing is applied.

    Raises:
        Infrastructure: the sandbox failed, or the program in it before any graded code had run.
        UserError: the sandbox has another Python than the environment is for.
    """
    normalised = normalised_patch(patch)
    run = await run_tests(exam, normalised.data, engine, labels)
    if run.refused:
        return with_notes(unresolved(f"the patch does not apply: {run.refused}"), normalised.notes)
    grade = judge(exam.tests, run, exam.metrics)
    if run.end and exam.metrics and not run.problem:
        grade = replace(grade, metrics=read_metrics(run.end, exam.metrics))
    log = mask_hidden_lines(run.log, (entry.data for entry in exam.hidden.values()))[:LOG_LIMIT]
    grade = replace(
        grade, log=log, shown=show_failures(grade.failed, run.failures) if exam.tests.by_name else b""
    )
    return with_notes(grade, (*normalised.notes, *run.notes))


async def run_tests(
    exam: Exam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str], survey: Survey | None = None
) -> TestRun:
    """Run the tests on a patched workspace in a fresh sandbox.

    Args:
        exam: what is run.
        patch: on the workspace; nothing is applied if it is empty.
        engine: opens the sandbox.
        labels: of the sandbox.
        survey: what runs instead of the named tests.

    Raises:
        Infrastructure: the sandbox failed, or the program in it before any graded code had run.
        UserError: the sandbox has another Python than the environment is for.
    """
    key, limit = secrets.token_bytes(32), exam.limits.test_timeout_s + APPLY_S + SETUP_S
    async with _open_sandbox(
        exam, {} if exam.tests.by_name else {TESTS: exam.hidden}, engine, labels
    ) as sandbox:
        await put_graded_files(sandbox, _exam_files(exam, patch), PLACE)
        if _needs_pytest(exam):
            await put_graded_files(sandbox, own_pytest.package_files(), own_pytest.FOLDER)
        completed = await sandbox.exec(
            ["python3", "-I", "-B", f"{PLACE}/runner/{RUNNER.name}"],
            timeout_s=limit,
            cwd="/job",
            env={**_ENVIRONMENT, **_packages(exam)},
            stdin=json.dumps(_assignment(exam, key, survey)).encode(),
            output_limit=OUTPUT_LIMIT if survey is None else SURVEY_OUTPUT,
            processor_s=None if survey is None else SURVEY_PROCESSORS * limit,
        )
        seconds = completed.seconds if completed.processor_s is None else completed.processor_s
        # Graded code decides how much there is to read.
        run = await asyncio.to_thread(_read_run, exam, completed, key, survey)
        run = replace(run, processor_s=seconds)
        if survey and survey.coverage and not run.problem:
            files = await sandbox.get(COVERAGE, limit_bytes=COVERAGE_BYTES)
            run = replace(run, coverage=files["data"].data if "data" in files else b"")
    return run


async def run_solution(
    exam: Exam, solution: Snapshot, engine: SandboxEngine, labels: Mapping[str, str]
) -> bytes:
    """Return the change of a task's own ``solution/solve.sh`` as a patch; it is never shown to an agent.

    Raises:
        UserError: the script fails, or leaves more than can be taken out.
        Infrastructure: the sandbox failed.
    """
    from dgm.archive.repository import patch

    workdir = exam.limits.workdir
    async with _open_sandbox(exam, {SOLUTION: solution}, engine, labels) as sandbox:
        if not isinstance(exam.workspace, InImage):
            await put_graded_files(sandbox, exam.workspace, workdir)
        completed = await sandbox.exec(
            ["bash", f"{SOLUTION}/solve.sh"], timeout_s=exam.limits.timeout_s, cwd=workdir, env=_ENVIRONMENT
        )
        if completed.exit_code:
            last = _text(completed.output).strip().rpartition("\n")[2][:200]
            raise UserError(f"solution/solve.sh ends with exit status {completed.exit_code}: {last}")
        if isinstance(exam.workspace, InImage):
            return await _diff_solution(sandbox, workdir, exam.workspace)
        try:
            after = await sandbox.get(workdir, limit_bytes=WORKSPACE_LIMIT, exclude=(".git",))
        except AgentFault as fault:
            raise UserError(f"solution/solve.sh leaves a workspace that cannot be read: {fault}") from fault
    return patch(exam.workspace, {name: entry for name, entry in after.items() if "__pycache__" not in name})


@asynccontextmanager
async def _open_sandbox(
    exam: Exam, shown: Mapping[str, Snapshot], engine: SandboxEngine, labels: Mapping[str, str]
) -> AsyncIterator[Sandbox]:
    """Open a fresh sandbox with the packages of the task, and with further folders, which are read-only."""
    limits, tests, workspace = exam.limits, exam.tests, exam.workspace
    packages = exam.environment.shown(limits.workdir).mount if exam.environment else None
    with tempfile.TemporaryDirectory(prefix="dgm-exam-") as folder:
        logs = (
            {"/logs": {"verifier": Entry(f"{LOGS}/verifier".encode(), 0o120000)}} if not tests.by_name else {}
        )
        spec = SandboxSpec(
            image=limits.image,
            labels=labels,
            mounts=[*_mounts(Path(folder), {**shown, **logs}), *([packages] if packages else [])],
            filled={limits.workdir: workspace.source} if isinstance(workspace, InImage) else {},
            cpus=tests.cpus,
            memory_mb=tests.memory_mb,
            pids=PIDS,
            disk_mb=tests.disk_mb,
            lifetime_s=max(limits.test_timeout_s, limits.timeout_s) + APPLY_S + 2 * SETUP_S,
        )
        async with engine.open(spec) as sandbox:
            await put_graded_files(sandbox, {".begun": Entry(b"")}, f"{LOGS}/verifier")
            await put_graded_files(sandbox, {".begun": Entry(b"")}, HOME)
            yield sandbox


def _mounts(folder: Path, shown: Mapping[str, Snapshot]) -> Sequence[Mount]:
    mounts = []
    for target, files in shown.items():
        source = folder / target.strip("/")
        source.mkdir()
        write_folder(files, source)
        # The sandbox's user is another one, so the mode must not depend on this user's umask.
        for path in (source, *source.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        mounts.append(Mount(source, target))
    return mounts


def _packages(exam: Exam) -> Mapping[str, str]:
    """Return the variables by which the tests find the packages of the task."""
    if exam.environment is None:
        return {}
    target = exam.environment.shown(exam.limits.workdir).mount.target
    if exam.tests.results is Results.PYTEST:
        return {"PYTHONPATH": ":".join(exam.environment.python_path)}
    return {"DGM_PACKAGES": target} if exam.tests.runner in BY_COMMAND else {}


def _exam_files(exam: Exam, patch: bytes) -> Snapshot:
    programs = (RUNNER, APPLIER, *((PLUGIN,) if exam.tests.results is Results.PYTEST else ()))
    files = {"patch": Entry(patch), **{f"runner/{file.name}": Entry(file.read_bytes()) for file in programs}}
    files |= {f"start/{name}": entry for name, entry in exam.files.items()}
    return files | (
        {f"hidden/{name}": entry for name, entry in exam.hidden.items()} if exam.tests.by_name else {}
    )


def _assignment(exam: Exam, key: bytes, survey: Survey | None) -> Mapping[str, Any]:
    tests, runner = exam.tests, RUNNERS[exam.tests.runner]
    files = tests.files if survey is None else survey.files
    return {
        "key": key.hex(),
        "alone": True,
        "place": PLACE,
        "workdir": exam.limits.workdir,
        "start": exam.workspace.source if isinstance(exam.workspace, InImage) else f"{PLACE}/start",
        "results": runner.results,
        "framework": runner.framework,
        "control": runner.control,
        "command": make_command(tests, files),
        "env": {**dict(tests.env), **({} if tests.by_name else {"TEST_DIR": TESTS, **_EARLIER})},
        "build": tests.build,
        "pytest": _pytest_arguments(exam),
        "restored": tests.restored,
        "deleted": tests.deleted,
        "roots": [root for root in exam.roots if root != "."],
        "parts": tests.parts,
        "reports": tests.reports,
        "patterns": tests.patterns,
        "tests": tests.names if survey is None else None,
        "files": files,
        "timeout_s": exam.limits.test_timeout_s,
        "limit_s": tests.limit_s,
        "rewards": {"folder": f"{LOGS}/verifier", "names": REWARD_FILES, "limit": REWARD_LIMIT},
        "child": {
            "files": files,
            "only": survey.only if survey else (),
            "most_failures": survey.most_failures if survey else 0,
            "coverage": COVERAGE if survey and survey.coverage else "",
            "options": tests.options,
            "limit_s": tests.limit_s,
            # A recipe's sandbox has other packages in Docker than in bubblewrap.
            "sealed": exam.environment is not None and not exam.limits.image.startswith(IN_ENGINE),
            "tops": sorted(own_modules(exam.files, exam.roots, tests.restored)),
        },
    }


def _needs_pytest(exam: Exam) -> bool:
    return exam.tests.results is Results.PYTEST and exam.environment is None


def _pytest_arguments(exam: Exam) -> Sequence[str]:
    """Return where dgm's own pytest is; in an image that the user names, its own pytest comes first."""
    if not _needs_pytest(exam):
        return []
    return [own_pytest.FOLDER, *(["last"] if exam.limits.image.startswith(IN_ENGINE) else [])]


def make_command(tests: TestSpec, files: Sequence[str]) -> Sequence[str]:
    """Return the command that runs the tests; what stands in braces, and the files, the sandbox adds."""
    runner = RUNNERS[tests.runner]
    if tests.runner in BY_COMMAND:
        return ["sh", "-c", *tests.command]
    if tests.runner in PLAIN or not runner.command:
        return tests.command
    if not runner.framework:
        return [*runner.command, *tests.flags, *tests.options]
    chosen = () if files or runner.framework == "node" else tests.patterns
    by_path = ("--runTestsByPath",) if files and runner.framework == "jest" else ()
    return ["node", *tests.flags, *runner.command, *tests.options, *by_path, *chosen]


def own_modules(workspace: Snapshot, roots: Sequence[str], tests: Sequence[str]) -> frozenset[str]:
    """Return the top-level modules and packages of a project, without its tests."""
    found = set()
    for root in roots:
        prefix = "" if root == "." else f"{root}/"
        for name in workspace:
            top, inside, _ = name.removeprefix(prefix).partition("/")
            module = top.removesuffix(".py")
            is_own = name.startswith(prefix) and name.endswith(".py") and not matches(name, tests)
            if is_own and module.isidentifier() and (not inside or f"{prefix}{top}/__init__.py" in workspace):
                found.add(module)
    return frozenset(found - {"setup", "docs", "examples"})


def read_reports(output: bytes, key: bytes) -> tuple[bytes, Mapping[str, Mapping[str, Any]]]:
    """Return the output without the reports that were sealed with the key, and those by their stage."""
    reports: dict[str, Mapping[str, Any]] = {}
    rest = b""
    for number, part in enumerate(output.split(_MARK)):
        line, end, after = part.partition(b"\n")
        seal, _, text = line.partition(b" ")
        wanted = hmac.new(key, text, "sha256").hexdigest().encode()
        if number and end and hmac.compare_digest(seal, wanted):
            report = json.loads(text)
            reports[report["stage"]] = report
            rest += after
        else:
            rest += (_MARK if number else b"") + part
    return rest, reports


def _read_run(exam: Exam, completed: Completed, key: bytes, survey: Survey | None) -> TestRun:
    output, reports = read_reports(completed.output, key)
    if "refused" in reports:
        return TestRun(refused=reports["refused"]["reason"])
    _check_prepared(exam, completed, reports)
    log = plain_log(output)
    notes = tuple(filter(None, str(reports["prepared"]["notes"]).split("; ")))
    if completed.out_of_memory:
        return TestRun(
            problem=f"the tests ran out of memory ({exam.tests.memory_mb} MB)", log=log, notes=notes
        )
    if "done" not in reports:
        return TestRun(problem=_describe_ending(completed), log=log, notes=notes)
    done = reports["done"]
    packed = zlib.decompress(base64.b64decode(done["reports"])) if done.get("reports") else b"[]"
    report = {
        "code": 0,
        **done,
        "reports": json.loads(packed),
        "root": exam.limits.workdir,
        "output": _text(output),
    }
    outcomes = Outcomes(problem=report.get("problem", ""))
    if exam.tests.by_name and "code" in done:
        names = exam.tests.names if survey is None else None
        outcomes = read_outcomes(exam.tests.results, report, names, _find_tests(exam), exam.limits.workdir)
    rewards = {name: base64.b64decode(data) for name, data in report.get("rewards", {}).items()}
    counts = {
        name: report[name] for name in ("code", "signal", "left", "writes", "refused") if name in report
    }
    return TestRun(
        **vars(outcomes),
        end=CommandEnd(**counts, rewards=rewards),
        log=log,
        seconds=done["seconds"],
        notes=notes,
    )


def _check_prepared(exam: Exam, completed: Completed, reports: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that the program came to the point from which the graded code is to blame.

    Raises:
        Infrastructure: it did not.
        UserError: the packages, or dgm's own pytest, are for another Python.
    """
    if "prepared" not in reports:
        end = _text(completed.output)[-300:]
        if completed.exit_code in _NO_PROGRAM:
            raise Infrastructure(f"the image has no python3 to run the tests with: {end[:200]}")
        if completed.timed_out:
            raise Infrastructure(f"applying a patch took more than {APPLY_S:.0f} s")
        raise Infrastructure(f"the test runner ended with {completed.exit_code} before it ran a test: {end}")
    environment, version = exam.environment, reports["prepared"]["python"]
    if environment and environment.language is Language.PYTHON and environment.version != version:
        raise UserError(
            f"{environment.packages.parent}: made for Python {environment.version}, but the sandbox image "
            f"{exam.limits.image!r} has {version}; use the sandbox it was mined with, or mine the suite again"
        )
    is_recipe = not exam.limits.image.startswith(IN_ENGINE)
    if is_recipe and _needs_pytest(exam) and int(version.split(".")[1]) < own_pytest.MIN_MINOR:
        raise UserError(
            f"the sandbox image {exam.limits.image!r} has Python {version}, and dgm's pytest needs "
            f"3.{own_pytest.MIN_MINOR} or later; use Docker, or an image with a pytest of its own"
        )


def _describe_ending(completed: Completed) -> str:
    """Return how the graded code ended the runner; its exit status could spell out what hidden tests say."""
    if completed.timed_out:
        return "the tests did not end in time"
    if completed.truncated:
        return "the tests report more than can be read"
    status = completed.exit_code if completed.exit_code in (0, 1, -9, 137) else "neither 0 nor 1"
    return f"the graded code ended the test runner (exit status {status})"


def _find_tests(exam: Exam) -> Snapshot:
    """Return the files of tests and configuration that every graded workspace has."""
    tests = exam.tests
    files = {name: entry for name, entry in exam.files.items() if matches(name, tests.restored)}
    return {name: entry for name, entry in {**files, **exam.hidden}.items() if name not in tests.deleted}


def judge(tests: TestSpec, run: TestRun, metrics: Sequence[str] = ()) -> Grade:
    """Return the verdict on a run; none of ``metrics``, which its suite declares, is a reward."""
    if tests.by_name:
        outside = f"imported from outside of the workspace: {run.foreign[0]}" if run.foreign else ""
        return judge_outcomes(tests.fail_to_pass, tests.pass_to_pass, run.outcomes, run.problem or outside)
    if run.problem or run.end is None:
        return unresolved(run.problem)
    if tests.results is Results.REWARD:
        return _judge_reward(run.end, tests.threshold, metrics)
    if run.end.code == 0:
        return Grade(Verdict.RESOLVED, "the tests pass", 1.0)
    status = f"{_describe_status(run.end.code)}{_NO_PROGRAM.get(run.end.code, '')}"
    reason = f"the tests fail ({f'signal {run.end.signal}' if run.end.signal else status})"
    return replace(unresolved(reason), failed=(tests.command[-1],))


def judge_outcomes(
    fail_to_pass: Sequence[str],
    pass_to_pass: Sequence[str],
    outcomes: Mapping[str, str],
    problem: str = "",
) -> Grade:
    """Return the verdict on the outcomes of tests.

    Args:
        fail_to_pass: tests that a fix must pass.
        pass_to_pass: tests that must go on passing.
        outcomes: of the tests that were reported; only ``passed`` is a pass.
        problem: why the outcomes do not count as they are; empty if they do.
    """
    names = (*fail_to_pass, *pass_to_pass)
    failed = tuple(name for name in names if outcomes.get(name) != "passed")
    passed = tuple(name for name in names if outcomes.get(name) == "passed")
    if not failed and not problem:
        return Grade(Verdict.RESOLVED, f"all {len(passed)} tests pass", 1.0, passed)
    mended = {*fail_to_pass}
    missing = sum(name in mended for name in failed)
    broken = len(failed) - missing
    reasons = (
        f"{missing} of {len(fail_to_pass)} tests still fail" if missing else "",
        f"{broken} of {len(pass_to_pass)} tests that passed are broken" if broken else "",
        problem,
    )
    tampered = problem.startswith(TAMPERED)
    counts = failed and not broken and not tampered
    score = 1 - missing / len(fail_to_pass) if counts else 0.0
    findings = (Finding(FindingKind.TESTS_TAMPERED, problem),) if tampered else ()
    reason = "; ".join(filter(None, reasons))
    return Grade(Verdict.UNRESOLVED, reason, score, passed, failed, findings=findings)


def _judge_reward(end: CommandEnd, threshold: float, metrics: Sequence[str]) -> Grade:
    try:
        name, reward = find_reward(end, metrics)
    except ValueError as error:
        return unresolved(str(error))
    score = min(1.0, max(0.0, reward))
    if reward >= threshold:
        return Grade(Verdict.RESOLVED, f"reward {reward:g}", score)
    return Grade(Verdict.UNRESOLVED, f"reward {reward:g}, {threshold:g} is needed", score, failed=(name,))


def find_reward(end: CommandEnd, metrics: Sequence[str] = ()) -> tuple[str, float]:
    """Return the reward, and the name of the file that holds it; none of ``metrics`` is one.

    Raises:
        ValueError: there is none, or not one that is surely the command's own; the message says why.
    """
    if end.signal or end.code in _SIGNALS:
        number = end.signal or end.code - 128
        raise ValueError(f"the tests were ended by signal {number}, so that their reward does not count")
    if end.refused:
        raise ValueError(f"the tests left no reward that can be read: {end.refused}")
    if not end.rewards:
        raise ValueError(f"the tests ended with {_describe_status(end.code)} and left no reward")
    if end.left and end.writes != 1:
        raise ValueError(
            f"the reward was written several times, and {end.left} processes of the tests still ran when they "
            "ended: end them first (kill, then wait)"
        )
    values = {name: _parse_reward(name, data, metrics) for name, data in end.rewards.items()}
    if len({*values.values()}) > 1:
        raise ValueError(" and ".join(f"{name} says {value:g}" for name, value in values.items()))
    return next(iter(values.items()))


def read_metrics(end: CommandEnd, names: Sequence[str]) -> Metrics:
    """Return the named finite numbers that stand beside ``reward`` in ``reward.json``; none without a valid reward."""
    try:
        find_reward(end, names)
        values = json.loads(_text(end.rewards.get("reward.json", b"{}")))
    except (ValueError, RecursionError):
        return ()
    numbers = {
        name: float(value)
        for name, value in (values.items() if isinstance(values, dict) else ())
        # Neither a boolean nor NaN; MAX_COUNT bounds what an event can hold.
        if type(value) in (int, float) and abs(value) <= MAX_COUNT
    }
    return tuple((name, numbers[name]) for name in names if name in numbers)


def _describe_status(code: int) -> str:
    return f"exit status {code}" if code in _TOLD else "an unusual exit status"


def _parse_reward(name: str, data: bytes, metrics: Sequence[str]) -> float:
    text = _text(plain_log(data)).strip()
    value: object = text
    if name.endswith(".json"):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{name}: is no JSON") from error
        if isinstance(value, dict):
            if "reward" not in value and (len(value) != 1 or {*value} & {*metrics}):
                raise ValueError(f"{name}: holds no value named 'reward'")
            value = value["reward"] if "reward" in value else next(iter(value.values()))
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name}: holds no number") from error
    if not math.isfinite(number):
        raise ValueError(f"{name}: holds no finite number")
    return number


def show_failures(failed: Sequence[str], failures: Mapping[str, Failure]) -> bytes:
    """Return the part of failures that an agent may see: names, kinds of exceptions, lines of the agent's own code.

    Graded code can read the hidden tests and raise anything, so no message and no value is passed on.
    """
    rows: list[str] = []
    for test in failed:
        failure = failures.get(test)
        kind = (failure.kind or OWN_KIND) if failure else ""
        rows += [
            f"FAILED {test}  {kind}".rstrip(),
            *(f"    {line}" for line in (failure.lines if failure else ())),
        ]
    return b"".join(row.encode("utf-8", "replace") + b"\n" for row in rows)[:SHOWN_LIMIT]


def mask_hidden_lines(log: bytes, hidden: Iterable[bytes]) -> bytes:
    """Return the log without lines of hidden tests, which tracebacks quote; it is for people only."""
    secret = {
        line for text in hidden for line in map(bytes.strip, text.split(b"\n")) if len(line) >= MASKED_FROM
    }
    # pytest marks the line that failed with "E" or ">".
    return b"\n".join(
        b"[line of a hidden test]" if line.lstrip(b"E>").strip() in secret else line
        for line in log.split(b"\n")
    )


async def put_graded_files(sandbox: Sandbox, files: Snapshot, place: str) -> None:
    """Put files into a sandbox.

    Raises:
        Infrastructure: they do not fit.
    """
    try:
        await sandbox.put(files, place)
    except AgentFault as fault:
        raise Infrastructure(f"the graded files do not go into a sandbox: {fault}") from fault


def unresolved(reason: str) -> Grade:
    """Return the grade of a patch that resolves nothing."""
    return Grade(Verdict.UNRESOLVED, reason, 0.0)


async def _diff_solution(sandbox: Sandbox, workdir: str, where: InImage) -> bytes:
    """Return the trusted solution's changes by git, with its own index and objects beside the read-only baseline."""
    own = "/tmp/solved"
    done = await sandbox.exec(
        ["sh", "-c", f"mkdir {own} && git read-tree HEAD && git add -A && git diff --cached --binary HEAD"],
        timeout_s=SETUP_S,
        cwd=workdir,
        env={
            **_ENVIRONMENT,
            "GIT_DIR": where.baseline,
            "GIT_WORK_TREE": workdir,
            "GIT_INDEX_FILE": f"{own}/index",
            "GIT_OBJECT_DIRECTORY": own,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{where.baseline}/objects",
            # The builder of the image owns the baseline, which git would refuse.
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
        },
        output_limit=WORKSPACE_LIMIT,
    )
    if done.exit_code:
        raise Infrastructure(f"the solution's changes cannot be read: {_text(done.output).strip()[:200]}")
    return done.output


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
