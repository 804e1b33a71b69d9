"""Practice exercises in six languages, in the layout of Aider's polyglot benchmark.

This module holds the agents' view of them and the entry to their hidden grading. ``benchmarks/polyglot/README.md``
describes the layout, the protocol, and the limits of the grading.
"""

import asyncio
import hashlib
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template

from dgm.archive.repository import patch as patch_between
from dgm.benchmarks.context import BenchmarkContext
from dgm.benchmarks.formats import Format
from dgm.benchmarks.grader_version import stamp_version
from dgm.benchmarks.polyglot_exercises import Exercise, read_exercises
from dgm.benchmarks.polyglot_grading import examine
from dgm.benchmarks.polyglot_languages import LANGUAGES
from dgm.benchmarks.polyglot_plan import GRADERS
from dgm.benchmarks.polyglot_source import exercises_folder
from dgm.benchmarks.prediction_patches import normalised_patch
from dgm.benchmarks.storable_text import cut_middle
from dgm.benchmarks.toml_table import suggestion
from dgm.config import PolyglotSettings
from dgm.domain import Snapshot, Split, Task, TaskId, Verdict
from dgm.errors import UserError
from dgm.paths import asset
from dgm.protocols import Grade, SandboxEngine

log = logging.getLogger(__name__)

PROMPTS = GRADERS / "prompts"
TIMEOUT_S = 600.0
AGAIN_LIMIT = 12_000
"""Maximum bytes of the tests' output, from both ends, that a second try is shown."""
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
        found = read_exercises(folder, settings.languages)
        self.problems: Sequence[str] = found.problems
        for problem in found.problems:
            log.warning("left out: %s", problem)
        for language in {exercise.language.name for exercise in found.exercises}:
            require_recipe(language, asset("sandboxes"))
        known = {TaskId(f"{language}-{name}") for language, name in passing_stubs(folder)}
        self.passing_stubs: Sequence[TaskId] = [each.id for each in found.exercises if each.id in known]
        """Exercises whose stubs already pass."""
        left_out = set() if settings.passing_stubs else known
        self._exercises = {each.id: each for each in found.exercises if each.id not in left_out}
        self._splits = found.splits
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
        return Task(
            id=task,
            benchmark=self.name,
            prompt=f"{exercise.statement}\n\n{_addendum(exercise)}",
            image=exercise.language.image,
            workdir=f"/work/{exercise.name}",
            timeout_s=TIMEOUT_S,
            tags=(exercise.language.name,),
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
        exercise = self.exercise(task)
        said = cut_middle(grade.log.decode("utf-8", "replace").strip() or grade.reason, AGAIN_LIMIT)
        second = _prompt(
            "polyglot_again.md", reason=grade.reason, said=said, files=_join_paths(exercise.solution)
        )
        return f"{self.task(task).prompt}\n\n{second}"

    async def grade(self, task: TaskId, patch: bytes, labels: Mapping[str, str]) -> Grade:
        """Run the hidden tests on the patched solution files in a fresh sandbox.

        Raises:
            Infrastructure: the sandbox failed; this is no verdict on the patch.
        """
        if not normalised_patch(patch).data and not self._settings.passing_stubs:
            return Grade(Verdict.UNRESOLVED, "empty patch", 0.0)
        return await examine(self.exercise(task), patch, self._engine, labels)

    def reference(self, task: TaskId) -> bytes:
        """Return the reference solution as a patch on the workspace, for verification; never shown to an agent."""
        exercise = self.exercise(task)
        return patch_between(exercise.stub, {**exercise.stub, **exercise.reference})

    async def verify(self, task: TaskId, labels: Mapping[str, str]) -> Sequence[str]:
        """Return the defects of a task, one line each; nothing if it is sound. Opens two sandboxes.

        Raises:
            Infrastructure: a sandbox failed.
        """
        exercise = self.exercise(task)
        problems: list[str] = []
        untouched = await examine(exercise, b"", self._engine, labels)
        if untouched.verdict is Verdict.RESOLVED:
            line = f"{exercise.language.name} {exercise.name}"
            problems.append(
                f"the stub passes untouched; leave it out: add '{line}' to {self._folder / PASSING_STUBS}"
            )
        if not exercise.examples:
            return [*problems, "no reference solution: files.example names none"]
        beside = [path for path in exercise.reference if path not in exercise.solution]
        patch = await asyncio.to_thread(self.reference, task)
        solved = await examine(exercise, patch, self._engine, labels, beside)
        if solved.verdict is not Verdict.RESOLVED:
            problems.append(f"the reference solution is {solved.verdict}: {solved.reason}")
        return problems


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


def passing_stubs(folder: Path) -> Sequence[tuple[str, str]]:
    """Return language and name of the exercises known to pass untouched, from the shipped list and the folder's own.

    Raises:
        UserError: a line of a list is neither a comment nor two words.
    """
    found: list[tuple[str, str]] = []
    for file in dict.fromkeys((asset("benchmarks", "polyglot") / PASSING_STUBS, folder / PASSING_STUBS)):
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        for number, line in enumerate(lines, 1):
            words = line.partition("#")[0].split()
            if words and (len(words) != 2 or words[0] not in LANGUAGES):
                raise UserError(
                    f"{file}:{number}: {line!r}: expected a language ({', '.join(LANGUAGES)}) and a name"
                )
            if words:
                found.append((words[0], words[1]))
    return found


def _addendum(exercise: Exercise) -> str:
    """Return the request that follows the exercise's own statement."""
    return _prompt("polyglot_task.md", language=exercise.language.title, files=_join_paths(exercise.solution))


def _prompt(file: str, **values: str) -> str:
    return Template((PROMPTS / file).read_text(encoding="utf-8")).substitute(values).strip()


def _join_paths(paths: Sequence[str]) -> str:
    return ", ".join(f"`{path}`" for path in paths)


def require_recipe(language: str, recipes: Path) -> None:
    """Check that there is a recipe for the language's image.

    Raises:
        UserError: there is none.
    """
    image = LANGUAGES[language].image
    if not (recipes / image / "sandbox.toml").is_file():
        raise UserError(
            f"no image for {language}: there is no {recipes / image / 'sandbox.toml'}; leave the language out with "
            "--set benchmarks.polyglot.languages"
        )


def _version(exercises: Iterable[Exercise], splits: Mapping[str, Split], settings: PolyglotSettings) -> str:
    """Return the version by the exercises, their splits, and the protocol."""
    digest = hashlib.sha256(f"attempts={settings.attempts}\n".encode())
    for exercise in exercises:
        digest.update(f"{splits[exercise.name]} {exercise.id}\n".encode())
        digest.update(exercise.digest())
    return stamp_version(digest.hexdigest())
