"""Grading by the task's own test command: a fresh sandbox, the graded workspace, ``tests/`` at ``/tests``.

The command and the code under test share a sandbox, so a suite's author decides how far one can fool the other.
Measures against it:

- The sandbox holds nothing of the agent's but its patch.
- Files that configure test runners are restored.
- Modules that Python would import in place of a test runner or its own are removed.
- ``/tests`` is read-only.
- A program that graded code cannot look into watches the command: how it ended, and what its reward is.
"""

import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from dgm.benchmarks.command_report import PLACE, WATCHER, CommandReport, find_reward, run_watched
from dgm.benchmarks.grading import LOG_LIMIT, mask_hidden_lines
from dgm.benchmarks.named_tests import is_restored
from dgm.benchmarks.plain_logs import plain_log
from dgm.benchmarks.prediction_patches import APPLIER, Applied, normalised_patch, read_applied, with_notes
from dgm.benchmarks.sandbox_report import put_graded_files, unresolved
from dgm.benchmarks.suite_files import TESTS, CommandTests, Limits, VerdictBasis
from dgm.benchmarks.workspaces import write_folder
from dgm.domain import Entry, Snapshot, Verdict
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.protocols import Completed, Grade, InImage, Mount, Sandbox, SandboxEngine, SandboxSpec

SOLUTION = "/solution"
SETUP_S = 60.0
APPLY_S = 240.0
"""Wall time in seconds for applying a patch, which may take ``SETUP_S`` of processor time."""
WORKSPACE_LIMIT = 200_000_000
_LOGS = f"{PLACE}/logs"
_PATCH = f"{PLACE}/graded.patch"
_NO_PROGRAM = (126, 127)
_MODULES = (".py", ".pyc", ".so")
_SHADOWED = sys.stdlib_module_names | {
    "pytest",
    "_pytest",
    "pluggy",
    "iniconfig",
    "packaging",
    "exceptiongroup",
    "tomli",
    "pygments",
    "py",
    "attr",
    "nose",
    "sitecustomize",
    "usercustomize",
}
_ENVIRONMENT = {"HOME": "/tmp", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True, slots=True)
class CommandExam:
    """The inputs for grading a patch by a command."""

    workspace: Snapshot | InImage
    hidden: Snapshot
    """The task's ``tests/``."""
    tests: CommandTests
    limits: Limits


async def examine(exam: CommandExam, patch: bytes, engine: SandboxEngine, labels: Mapping[str, str]) -> Grade:
    """Grade a patch by running the tests, even for an empty patch, for which nothing is applied.

    Raises:
        Infrastructure: the sandbox failed, or the image lacks a program for grading.
    """
    async with _open_workspace(exam, {TESTS: exam.hidden}, engine, labels) as sandbox:
        given = normalised_patch(patch)
        applied = await _apply(sandbox, exam.limits.workdir, given.data) if given.data else Applied()
        if applied.refused:
            return unresolved(f"the patch does not apply: {applied.refused}")
        if refusal := await _restore(sandbox, exam):
            return unresolved(refusal)
        completed, report = await run_watched(
            sandbox,
            exam.tests.command,
            timeout_s=exam.limits.test_timeout_s,
            cwd=exam.limits.workdir,
            env={
                **_ENVIRONMENT,
                **dict(exam.tests.env),
                "TEST_DIR": TESTS,
            },
            reward_folder=f"{_LOGS}/verifier" if exam.tests.result is VerdictBasis.REWARD else "",
        )
    if report is None and not given.data and completed.exit_code in _NO_PROGRAM:
        said = completed.output.decode("utf-8", "replace").strip()[:200]
        raise Infrastructure(f"the image has no python3 to run the tests with: {said}")
    graded = _grade_outcome(exam, completed, report)
    log = mask_hidden_lines(plain_log(completed.output), exam.hidden)[:LOG_LIMIT]
    return with_notes(replace(graded, log=log), (*given.notes, *applied.notes))


async def run_solution(
    exam: CommandExam, solution: Snapshot, engine: SandboxEngine, labels: Mapping[str, str]
) -> bytes:
    """Return the change of a task's own ``solution/solve.sh`` as a patch; it is never shown to an agent.

    Raises:
        UserError: the script fails, or leaves more than can be taken out.
        Infrastructure: the sandbox failed.
    """
    from dgm.archive.repository import patch

    workdir = exam.limits.workdir
    async with _open_workspace(exam, {SOLUTION: solution}, engine, labels) as sandbox:
        completed = await sandbox.exec(
            ["bash", f"{SOLUTION}/solve.sh"],
            timeout_s=exam.limits.timeout_s,
            cwd=workdir,
            env=_ENVIRONMENT,
        )
        if completed.exit_code:
            last = completed.output.decode("utf-8", "replace").strip().rpartition("\n")[2][:200]
            raise UserError(f"solution/solve.sh ends with exit status {completed.exit_code}: {last}")
        if isinstance(exam.workspace, InImage):
            return await _diff_solution(sandbox, workdir, exam.workspace)
        try:
            after = await sandbox.get(workdir, limit_bytes=WORKSPACE_LIMIT, exclude=(".git",))
        except AgentFault as fault:
            raise UserError(f"solution/solve.sh leaves a workspace that cannot be read: {fault}") from fault
    return patch(exam.workspace, {name: entry for name, entry in after.items() if "__pycache__" not in name})


@asynccontextmanager
async def _open_workspace(
    exam: CommandExam, shown: Mapping[str, Snapshot], engine: SandboxEngine, labels: Mapping[str, str]
) -> AsyncIterator[Sandbox]:
    """Open a fresh sandbox with the workspace in its place, and with further folders, which are read-only."""
    limits, tests, workspace = exam.limits, exam.tests, exam.workspace
    with tempfile.TemporaryDirectory(prefix="dgm-exam-") as place:
        spec = SandboxSpec(
            image=limits.image,
            labels=labels,
            mounts=_mounts(Path(place), shown),
            filled={limits.workdir: workspace.source} if isinstance(workspace, InImage) else {},
            cpus=tests.cpus,
            memory_mb=tests.memory_mb,
            disk_mb=tests.disk_mb,
            lifetime_s=max(limits.test_timeout_s, limits.timeout_s) + APPLY_S + 2 * SETUP_S,
        )
        async with engine.open(spec) as sandbox:
            own = {"logs/verifier/.begun": Entry(b""), WATCHER.name: Entry(WATCHER.read_bytes())}
            await put_graded_files(sandbox, own, PLACE)
            if not isinstance(workspace, InImage):
                await put_graded_files(sandbox, workspace, limits.workdir)
            yield sandbox


def _mounts(place: Path, shown: Mapping[str, Snapshot]) -> Sequence[Mount]:
    folders = {**shown, "/logs": {"verifier": Entry(f"{_LOGS}/verifier".encode(), 0o120000)}}
    mounts = []
    for target, files in folders.items():
        folder = place / target.strip("/")
        folder.mkdir()
        write_folder(files, folder)
        # The sandbox's user is another one, so the mode must not depend on this user's umask.
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        mounts.append(Mount(folder, target))
    return mounts


async def _apply(sandbox: Sandbox, workdir: str, patch: bytes) -> Applied:
    """Apply the graded patch."""
    folder, _, name = _PATCH.rpartition("/")
    await sandbox.put({name: Entry(patch), APPLIER.name: Entry(APPLIER.read_bytes())}, folder)
    done = await sandbox.exec(
        ["python3", "-I", "-B", f"{folder}/{APPLIER.name}", _PATCH, workdir],
        timeout_s=APPLY_S,
        processor_s=SETUP_S,
        cwd="/",
        env=_ENVIRONMENT,
    )
    if done.exit_code in _NO_PROGRAM:
        said = done.output.decode("utf-8", "replace").strip()[:200]
        raise Infrastructure(f"the image has no python3 to apply a patch with: {said}")
    if done.out_of_processor:
        return Applied(refused=f"it could not be applied within {SETUP_S:.0f} s of processor time")
    if done.timed_out:
        raise Infrastructure(f"applying a patch took more than {APPLY_S:.0f} s")
    return read_applied(done.output)


async def _restore(sandbox: Sandbox, exam: CommandExam) -> str:
    """Restore the files that configure the tests, and remove those that the patch added.

    Returns:
        Why that cannot be done with what the patch leaves; empty if it is done.

    Raises:
        Infrastructure: the image lacks a program for it.
    """
    patterns, workdir = exam.tests.restored, exam.limits.workdir
    if not patterns:
        return ""
    await _remove_shadows(sandbox, exam)
    words = [word for each in patterns for word in ("-o", *_pattern_arguments(each))][1:]
    find = ["find", ".", "-mindepth", "1", "(", *words, ")", "-prune", "-exec", "rm", "-rf", "--", "{}", "+"]
    done = await sandbox.exec(find, timeout_s=SETUP_S, cwd=workdir)
    if done.exit_code:
        said = done.output.decode("utf-8", "replace").strip()[:200]
        if done.exit_code in _NO_PROGRAM:
            raise Infrastructure(f"the graded workspace cannot be prepared: {said}")
        return f"the files that configure the tests cannot be restored in what the patch leaves: {said}"
    match exam.workspace:
        case InImage(source=source):
            copy = [word for each in patterns for word in ("-o", *_pattern_arguments(each))][1:]
            script = 'find . -mindepth 1 "(" "$@" ")" -prune -exec cp -a --parents -t "$0" -- {} +'
            await sandbox.exec(["sh", "-c", script, workdir, *copy], timeout_s=SETUP_S, cwd=source)
        case workspace:
            kept = {name: entry for name, entry in workspace.items() if is_restored(name, patterns)}
            if kept:
                await sandbox.put(kept, workdir)
    return ""


async def _remove_shadows(sandbox: Sandbox, exam: CommandExam) -> None:
    """Remove modules that the patch added at the root and that shadow a test runner's or Python's own."""
    workdir = exam.limits.workdir
    match exam.workspace:
        case InImage(source=source):
            before = await _list_two_levels(sandbox, source)
        case workspace:
            before = list(workspace)
    known = {name.partition("/")[0] for name in before}
    importable = {
        top
        for top, inside, _ in (name.partition("/") for name in await _list_two_levels(sandbox, workdir))
        if inside or top.endswith(_MODULES)
    }
    added = sorted(name for name in importable - known if name.split(".")[0] in _SHADOWED)
    if added:
        await sandbox.exec(["rm", "-rf", "--", *added], timeout_s=SETUP_S, cwd=workdir)


async def _list_two_levels(sandbox: Sandbox, folder: str) -> Sequence[str]:
    """Return the names in a folder, and the ``__init__`` files of its subfolders, which make them packages."""
    find = "find -L . -mindepth 1 -maxdepth 2 '(' -path './*/__init__.*' -o ! -path './*/*' ')' -print0 2>/dev/null"
    done = await sandbox.exec(["sh", "-c", find], timeout_s=SETUP_S, cwd=folder, output_limit=WORKSPACE_LIMIT)
    return [name.removeprefix("./") for name in done.output.decode("utf-8", "replace").split("\0") if name]


def _pattern_arguments(pattern: str) -> Sequence[str]:
    return ("-path", f"./{pattern}") if "/" in pattern else ("-name", pattern)


def _grade_outcome(exam: CommandExam, completed: Completed, report: CommandReport | None) -> Grade:
    if completed.timed_out:
        return unresolved(f"the tests did not end within {exam.limits.test_timeout_s:g} s")
    if completed.out_of_memory:
        return unresolved(f"the tests ran out of memory ({exam.tests.memory_mb} MB)")
    if report is None:
        reason = f"the program that watches the tests was ended (exit status {completed.exit_code})"
        return unresolved(reason)
    if exam.tests.result is VerdictBasis.EXIT:
        return _grade_exit(exam.tests.command, report)
    return _grade_reward(report, exam.tests.threshold)


def _grade_exit(command: Sequence[str], report: CommandReport) -> Grade:
    if report.code == 0:
        return Grade(Verdict.RESOLVED, "the tests pass", 1.0)
    why = {126: ": a program of theirs cannot be started", 127: ": a program of theirs is not there"}
    end = (
        f"signal {report.signal}" if report.signal else f"exit status {report.code}{why.get(report.code, '')}"
    )
    return replace(unresolved(f"the tests fail ({end})"), failed=(command[-1],))


def _grade_reward(report: CommandReport, threshold: float) -> Grade:
    try:
        name, reward = find_reward(report)
    except ValueError as error:
        return unresolved(str(error))
    score = min(1.0, max(0.0, reward))
    if reward >= threshold:
        return Grade(Verdict.RESOLVED, f"reward {reward:g}", score)
    return Grade(Verdict.UNRESOLVED, f"reward {reward:g}, {threshold:g} is needed", score, failed=(name,))


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
        said = done.output.decode("utf-8", "replace").strip()[:200]
        raise Infrastructure(f"the solution's changes cannot be read: {said}")
    return done.output
