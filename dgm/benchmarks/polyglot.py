"""Practice exercises in six languages, in the layout of Aider's polyglot benchmark, as tasks that tests by name grade.

``benchmarks/polyglot/README.md`` describes the layout, the protocol, and the limits of the grading.
"""

import asyncio
import hashlib
import logging
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template

from dgm.archive.git import REMOTE_S, LocalRepository, last_line, run_git, user_environment
from dgm.archive.repository import make_repository
from dgm.archive.repository import patch as patch_between
from dgm.archive.snapshots import write_folder
from dgm.benchmarks.formats import BenchmarkContext, Format
from dgm.benchmarks.grade import Survey, TestRun, judge_outcomes, run_tests, show_failures, unresolved
from dgm.benchmarks.grader_version import stamp_version
from dgm.benchmarks.logs import cut_middle
from dgm.benchmarks.polyglot_exercises import TRACKS, Exercise, read_exercises
from dgm.benchmarks.prediction_patches import normalised_patch, with_notes
from dgm.benchmarks.toml_table import suggestion
from dgm.config import PolyglotSettings
from dgm.domain import CommitId, Snapshot, Split, Task, TaskId, Verdict
from dgm.errors import Infrastructure, UserError
from dgm.paths import asset, cache_folder
from dgm.protocols import Grade, SandboxEngine

log = logging.getLogger(__name__)

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.-]+@[\w.-]+:|file:")
_TRANSPORTS = "https:http:ssh:git:file"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def is_address(source: str) -> bool:
    """Return whether the source is a git URL rather than a folder."""
    return bool(_ADDRESS.match(source)) and not Path(source).expanduser().is_dir()


def exercises_folder(source: str) -> Path:
    """Return the folder of ``source``: the shipped exercises if empty, the folder itself, or the fetched copy of a URL.

    Args:
        source: nothing, a folder, ``URL`` (its default branch) or ``URL@REVISION``.

    Raises:
        UserError: the address or the revision is wrong.
        Infrastructure: the repository could not be fetched and is not in the cache.
    """
    if not source:
        return asset("benchmarks", "polyglot")
    if not is_address(source):
        return Path(source).expanduser()
    url, revision = _split(source)
    if url.startswith("-"):
        raise UserError(f"polyglot:{source}: not a git URL")
    place = cache_folder("polyglot", hashlib.sha256(url.encode()).hexdigest()[:16])
    commit = revision if _COMMIT.fullmatch(revision) else _resolved(url, revision, place)
    folder = place / commit
    if not folder.is_dir():
        _fetch(url, commit, folder)
    return folder


def _split(source: str) -> tuple[str, str]:
    url, at, revision = source.rpartition("@")
    if at and re.fullmatch(r"[\w.-]+", revision) and ("://" not in revision) and re.search(r"[:/]", url):
        # In https://user@host/… the part after the @ has a slash; this one has none, so it is a revision.
        return url, revision
    return source, "HEAD"


def _resolved(url: str, revision: str, place: Path) -> str:
    """Return the commit that a branch or tag names now; the last known one if the server does not answer."""
    noted = place / f"{revision}.commit"
    names = [f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}", f"refs/heads/{revision}"]
    names += ["HEAD"] if revision == "HEAD" else []
    try:
        lines = _git("ls-remote", "--", url, *names, folder=place).splitlines()
    except Infrastructure as error:
        if not noted.is_file():
            raise
        log.warning("%s; taking the commit that %s named last", error, revision)
        return noted.read_text(encoding="ascii").strip()
    # Git also returns refs that only end with a requested name: refs/remotes/origin/HEAD, refs/x/refs/tags/v1.
    known = {name: commit for commit, _, name in (line.partition("\t") for line in lines)}
    commit = next((known[name] for name in names if name in known), "")
    if not _COMMIT.fullmatch(commit):
        raise UserError(
            f"polyglot:{url}@{revision}: no such branch or tag; give one, or a commit's 40 digits"
        )
    noted.write_text(commit + "\n", encoding="ascii")
    return commit


def _fetch(url: str, commit: str, folder: Path) -> None:
    """Fetch into a temporary folder and rename it: a folder with the commit's name is complete."""
    log.info("fetching %s at %s", url, commit[:12])
    made = Path(tempfile.mkdtemp(prefix="half-", dir=folder.parent))
    try:
        git = made / "repository.git"
        git.mkdir()
        make_repository(git)
        _git("fetch", "-q", "--depth=1", "--no-tags", "--", url, commit, folder=git)
        try:
            with LocalRepository(git, bare=True) as repository:
                exercises = repository.files(CommitId(commit))
        except UserError as error:
            raise UserError(f"polyglot:{url}@{commit}: not a commit") from error
        write_folder(exercises, made / "exercises")
        try:
            (made / "exercises").rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _git(*arguments: str, folder: Path) -> str:
    variables = user_environment(_TRANSPORTS) | {"GIT_CEILING_DIRECTORIES": str(folder.resolve().parent)}
    done = run_git(folder, variables, arguments, timeout_s=REMOTE_S)
    output = (done.stderr if done.returncode else done.stdout).decode("utf-8", "replace")
    if done.returncode:
        raise Infrastructure(f"polyglot: git: {last_line(output)}")
    return output


log = logging.getLogger(__name__)

PROMPTS = Path(__file__).with_name("prompts")
AGAIN_LIMIT, LOG_LIMIT = 12_000, 60_000
"""Maximum bytes of the tests' output, from both ends, that a second try is shown and that are kept."""
PASSING_STUBS = "passing-stubs.txt"
DEFAULTS = PolyglotSettings()


class PolyglotBenchmark:
    """A ``dgm.protocols.Benchmark`` on a folder of exercises, ``LANGUAGE/exercises/practice/NAME``.

    All exercises are read on opening. A wrong one is left out, logged, and listed in ``problems``.

    Raises:
        UserError: there is no exercise, or a language's image has no recipe.
    """

    name = "polyglot"

    def __init__(self, folder: Path, engine: SandboxEngine, settings: PolyglotSettings = DEFAULTS) -> None:
        self._engine = engine
        self._settings = settings
        self._folder = folder
        read = read_exercises(folder, settings.languages)
        self.problems: Sequence[str] = read.problems
        for problem in read.problems:
            log.warning("left out: %s", problem)
        for image in {exercise.limits.image for exercise in read.exercises}:
            require_recipe(image, asset("sandboxes"))
        known = set(passing_stubs(folder))
        self.passing_stubs: Sequence[TaskId] = [each.id for each in read.exercises if each.id in known]
        """Exercises whose stubs already pass."""
        left_out = set() if settings.passing_stubs else known
        self._exercises = {each.id: each for each in read.exercises if each.id not in left_out}
        self._splits = read.splits
        if not self._exercises:
            raise UserError(
                f"{folder}: every exercise is listed in {PASSING_STUBS}; nothing is left to solve"
            )
        self.version = _version(self._exercises.values(), self._splits, settings)

    def tasks(self, split: Split) -> Sequence[Task]:
        """Return the split's tasks, by language and in the order of their names."""
        return [self.task(task) for task, each in self._exercises.items() if self._splits[each.name] is split]

    def task(self, task: TaskId) -> Task:
        """Return one task by id.

        Raises:
            UserError: there is no such task.
        """
        exercise = self.exercise(task)
        files = _join_paths(exercise.named.solution)
        addendum = _prompt("polyglot_task.md", language=exercise.language.title, files=files)
        return Task(
            id=task,
            benchmark=self.name,
            prompt=f"{exercise.statement}\n\n{addendum}",
            image=exercise.limits.image,
            workdir=exercise.limits.workdir,
            timeout_s=exercise.limits.timeout_s,
            tags=(exercise.track,),
        )

    def exercise(self, task: TaskId) -> Exercise:
        """Return a task's exercise for people and for grading; an agent must not see it.

        Raises:
            UserError: there is no such task.
        """
        if task not in self._exercises:
            raise UserError(f"{self._folder}: no task {task!r}{suggestion(task, list(self._exercises))}")
        return self._exercises[task]

    def workspace(self, task: TaskId) -> Snapshot:
        """Return the exercise with its stub, without tests, examples and notes."""
        return self.exercise(task).stub

    def again(self, task: TaskId, grade: Grade, tried: int) -> str:
        """Return the prompt for a second try, which shows the test output of the first one; empty if there is none."""
        if grade.verdict is not Verdict.UNRESOLVED or tried >= self._settings.attempts:
            return ""
        output = cut_middle(grade.log.decode("utf-8", "replace").strip() or grade.reason, AGAIN_LIMIT)
        files = _join_paths(self.exercise(task).named.solution)
        second = _prompt("polyglot_again.md", reason=grade.reason, output=output, files=files)
        return f"{self.task(task).prompt}\n\n{second}"

    async def grade(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Run the hidden tests on the patched workspace in a fresh sandbox.

        Raises:
            Infrastructure: the sandbox failed; this is no verdict on the patch.
        """
        if not normalised_patch(patch).data and not self._settings.passing_stubs:
            return unresolved("empty patch")
        return await self._examine(self.exercise(task), patch, labels)

    def reference(self, task: TaskId) -> bytes:
        """Return the reference solution as a patch on the workspace, for verification; never shown to an agent."""
        exercise = self.exercise(task)
        return patch_between(exercise.stub, {**exercise.stub, **exercise.reference})

    async def _examine(self, exercise: Exercise, patch: bytes, labels: Mapping[str, str]) -> Grade:
        normal = normalised_patch(patch)
        # A survey: names in the text of tests are not all that run.
        survey = Survey(files=tuple(exercise.tests))
        run = await run_tests(exercise.exam, normal.data, self._engine, labels, survey)
        if run.refused:
            return with_notes(unresolved(f"the patch does not apply: {run.refused}"), normal.notes)
        # Graded code can report any number of tests.
        grade = await asyncio.to_thread(_judge, exercise, run)
        return with_notes(grade, (*normal.notes, *run.notes))


def open_polyglot(context: BenchmarkContext) -> PolyglotBenchmark:
    """Open ``polyglot:FOLDER``, ``polyglot:URL``, ``polyglot:URL@REVISION``, or the shipped exercises (``polyglot:``).

    Raises:
        UserError: the source is wrong, or holds no exercise.
        Infrastructure: it could not be fetched.
    """
    folder = exercises_folder(context.name.partition(":")[2])
    return PolyglotBenchmark(folder, context.engine, context.settings.polyglot)


FORMAT = Format(
    "polyglot",
    open_polyglot,
    "polyglot:FOLDER",
    (("polyglot:FOLDER | polyglot:GIT_URL", "exercises in the layout of Aider's polyglot benchmark"),),
    is_folder=True,
    meaning="exercises in a folder or a git repository",
    is_local=True,
    shipped="little practice exercises in C++, Go, Java, JavaScript, Python and Rust",
    tries=lambda settings: settings.polyglot.attempts,
)


def passing_stubs(folder: Path) -> Sequence[TaskId]:
    """Return the exercises known to pass untouched, from the shipped list and the folder's own.

    Raises:
        UserError: a line of a list is neither a comment nor two words.
    """
    known: list[TaskId] = []
    for file in dict.fromkeys((asset("benchmarks", "polyglot") / PASSING_STUBS, folder / PASSING_STUBS)):
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].split()
            if words and (len(words) != 2 or words[0] not in TRACKS):
                raise UserError(
                    f"{file}:{number}: {line!r}: expected a language ({', '.join(TRACKS)}) and a name"
                )
            known += [TaskId("-".join(words))] if words else []
    return known


def require_recipe(image: str, recipes: Path) -> None:
    """Check that there is a recipe for a language's image.

    Raises:
        UserError: there is none.
    """
    if not (recipes / image / "sandbox.toml").is_file():
        raise UserError(
            f"no image {image}: there is no {recipes / image / 'sandbox.toml'}; leave the language out",
            argument="benchmarks.polyglot.languages",
        )


def _judge(exercise: Exercise, run: TestRun) -> Grade:
    """Return the verdict: all tests that ran, and all that the text of the tests tells, must pass."""
    absent = [name for name in exercise.expected if _find_named(name, run.outcomes) is None]
    grade = judge_outcomes((*run.outcomes, *absent), (), run.outcomes, run.problem)
    messages = [f"FAILED {name}\n{run.messages.get(name, '')}\n" for name in grade.failed]
    broken = [f"{name}: {reason}\n" for name, reason in run.broken.items()]
    text = "".join([*messages, *broken, "output:\n"]).encode("utf-8", "replace") + run.log
    # Graded code can report any name: what is shown are names that stand in the tests.
    shown = {name: _find_named(name, grade.failed) for name in exercise.expected}
    failed = {name: test for name, test in shown.items() if test is not None}
    failures = {name: run.failures[test] for name, test in failed.items() if test in run.failures}
    return replace(grade, log=text[:LOG_LIMIT], shown=show_failures([*failed], failures))


def _find_named(name: str, tests: Iterable[str]) -> str | None:
    """Return the shortest of the reported tests that holds a name as whole words."""
    pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    return min((test for test in tests if pattern.search(test)), key=len, default=None)


def _prompt(file: str, **values: str) -> str:
    return Template((PROMPTS / file).read_text(encoding="utf-8")).substitute(values).strip()


def _join_paths(paths: Sequence[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def _version(exercises: Iterable[Exercise], splits: Mapping[str, Split], settings: PolyglotSettings) -> str:
    """Return the version by the exercises, their splits, and the protocol."""
    digest = hashlib.sha256(f"attempts={settings.attempts}\n".encode())
    for exercise in exercises:
        digest.update(f"{splits[exercise.name]} {exercise.id}\n".encode())
        digest.update(exercise.digest())
    return stamp_version(digest.hexdigest())
