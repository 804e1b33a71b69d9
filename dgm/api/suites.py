"""Task suites from a program: listed, looked at, verified, fetched, imported, mined, changed (``dgm benchmark``)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dgm.api.arguments import assignments_of
from dgm.api.records import Records, records_of
from dgm.benchmarks.harbor import ImportReport
from dgm.benchmarks.opening import open_suite
from dgm.benchmarks.suite_editing import SplitBy
from dgm.blocking import block, in_python
from dgm.config import BenchmarksSettings, GradingSettings, resolve
from dgm.domain import Split, Task, TaskId
from dgm.errors import UserError
from dgm.protocols import Benchmark
from dgm.sandboxes.choose import choose
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import use_engine
from dgm.sessions import suite_editing
from dgm.sessions.mined_suite import MiningReport, mine
from dgm.sessions.mining_options import Funnel, MiningOptions
from dgm.sessions.mining_statements import open_asking
from dgm.sessions.suite_images import FetchOutcome, plan_fetch
from dgm.sessions.suite_tasks import describe_hidden, describe_origin, find_facts
from dgm.sessions.suites import (
    NoSandboxEngine,
    SuiteVerification,
    describe_suite,
    describe_task,
    list_suites,
    read_workspace,
    select_tasks,
    verify_tasks,
)
from dgm.sessions.suites import (
    import_suite as import_tasks,
)

__all__ = ["MiningOptions", "SuiteView", "import_suite", "mine_benchmark", "suite", "suites"]


@dataclass(frozen=True, slots=True)
class SuiteView:
    """A task suite that can be looked at; what opens a sandbox says so."""

    name: str
    """By which it was opened."""
    opened: Benchmark = field(repr=False)
    settings: BenchmarksSettings = field(repr=False)
    grading: GradingSettings = field(repr=False)

    @property
    def version(self) -> str:
        """Changes with whatever can change a verdict."""
        return self.opened.version

    def tasks(self, split: str | None = None) -> Sequence[Task]:
        """Return the tasks of a split: ``search``, ``promotion`` or ``holdout``; None: all of them.

        Raises:
            UserError: there is no such split.
        """
        try:
            splits = list(Split) if split is None else [Split(split)]
        except ValueError as error:
            names = ", ".join(each.value for each in Split)
            raise UserError(f"split {split!r}: there are {names}") from error
        return [task for each in splits for task in self.opened.tasks(each)]

    def record(self, engine: str | Sequence[str] | None = None) -> Mapping[str, Any]:
        """Return the document that ``dgm benchmark show --json`` prints: tasks, tags, images and their state.

        Args:
            engine: address of the Docker engine, such as ``ssh://user@host``, or several; None: the environment's.
        """
        with in_python(), use_engine(engine):
            return describe_suite(self.name, self.opened)

    def task(self, task: str) -> Mapping[str, Any]:
        """Return a task as an agent sees it: prompt, files, image, time. Never a hidden test.

        Raises:
            UserError: there is no such task.
        """
        found = self.opened.task(TaskId(task))
        return describe_task(found, read_workspace(self.opened, found))

    def origin(self, task: str, *, hidden: bool = False) -> Mapping[str, Any]:
        """Return what agents do not see of a task: split, kind, names of its tests, files of the fix, provenance.

        It is empty for a benchmark that is not a suite's folder.

        Args:
            task: its id.
            hidden: adds its hidden tests and its reference fix.

        Raises:
            UserError: there is no such task.
        """
        shown = {"hidden": describe_hidden(self.opened, TaskId(task))} if hidden else {}
        return {**describe_origin(self.opened, TaskId(task)), **shown}

    def facts(self) -> Records:
        """Return a row for each task of a suite's folder: split, kind, date, numbers of tests and of changed lines."""
        return records_of([facts.record() for facts in find_facts(self.opened)])

    def verify(
        self,
        tasks: Sequence[str] = (),
        *,
        workers: int = 2,
        sandbox: str = "auto",
        engine: str | Sequence[str] | None = None,
        on_task: Callable[[TaskId, Sequence[str]], None] = lambda _task, _problems: None,
    ) -> SuiteVerification:
        """Check in sandboxes that doing nothing fails and the reference fix passes; blocks.

        Args:
            tasks: their ids; none: all.
            workers: tasks at once, from 1.
            sandbox: ``auto``, or the name of an engine.
            engine: address of the Docker engine, such as ``ssh://user@host``, or several; None: the environment's.
            on_task: is called with each task and what is wrong with it.

        Raises:
            UserError: there is no such task, or no sandbox.
            Infrastructure: the sandboxes' engine failed.
        """
        if workers < 1:
            raise UserError(f"workers {workers}: must be 1 or more")

        async def perform() -> SuiteVerification:
            with use_engine(engine):
                made = choose(sandbox)
            opened = open_suite(self.name, made, self.settings, self.grading)
            return await verify_tasks(opened, made, select_tasks(opened, tasks), workers, on_task)

        return block(lambda _: perform(), None)

    def fetch(
        self,
        tasks: Sequence[str] = (),
        *,
        workers: int = 4,
        engine: str | None = None,
        on_progress: Callable[[str, str], None] = lambda _image, _state: None,
    ) -> FetchOutcome:
        """Fetch or build the images of the tasks without asking; needs Docker. Goes on after an interruption.

        Args:
            tasks: their ids; none: all.
            workers: images at once, from 1.
            engine: address of the one Docker engine, such as ``ssh://user@host``; None: as the environment says.
            on_progress: is called with an image, or an instance, and how far it is.

        Returns:
            The images that are ready, those that failed with the reason, and those removed to make room.

        Raises:
            UserError: there is no such task.
            Infrastructure: no Docker engine answers.
        """
        with use_engine(engine):
            made = DockerEngine()
            opened = open_suite(self.name, made, self.settings)
            outcome = FetchOutcome()
            for plan in plan_fetch(opened, [TaskId(task) for task in tasks], made, self.settings, workers):
                plan.do(on_progress, outcome)
        return outcome


def suites() -> Records:
    """Return a row for each shipped suite: name, description, tasks by split, version."""
    return records_of(list_suites()["suites"])


def suite(name: str | Path, settings: Mapping[str, Any] | None = None) -> SuiteView:
    """Open a task suite to look at it; no sandbox is opened.

    Args:
        name: as ``evolve`` takes it: a name, a folder, ``swebench:verified``, several joined by ``+``.
        settings: ``benchmarks.*`` and ``grading.*``.

    Raises:
        UserError: there is none, or a task in it is wrong.
    """
    with in_python():
        chosen = resolve(None, assignments_of(settings), {})
        opened = open_suite(str(name), NoSandboxEngine(), chosen.benchmarks)
        return SuiteView(str(name), opened, chosen.benchmarks, chosen.grading)


def import_suite(
    folder: str | Path, target: str | Path, *, image: str = "", holdout: float = 1 / 3
) -> ImportReport:
    """Write tasks in the layout of Harbor or Terminal-Bench 2 as a suite of your own.

    Args:
        folder: holds the tasks.
        target: a new folder.
        image: the recipe whose image all tasks work in; empty: the tasks' own.
        holdout: share of the tasks that is kept for reports, from 0 to 1.

    Returns:
        The tasks, what could not be carried over of each, and those that were skipped.

    Raises:
        UserError: there is no such recipe, or the target lies in the folder or exists.
    """
    return import_tasks(Path(folder), Path(target), image, holdout)[0]


def merge_suites(suites: Sequence[str | Path], target: str | Path) -> SuiteView:
    """Write the tasks of several suites into one; a task that two have is taken once.

    Args:
        suites: their names or folders, two or more.
        target: a new folder, whose name becomes the suite's.

    Raises:
        UserError: one is no suite's folder, one is named twice, or the target is in use.
    """
    suite_editing.merge_suites([str(name) for name in suites], Path(target))
    return suite(target)


def filter_suite(name: str | Path, where: Sequence[str], target: str | Path) -> SuiteView:
    """Write the tasks of a suite that meet all conditions into a new suite.

    Args:
        name: a suite's name or folder.
        where: such as ``["kind=bug", "f2p<5"]``; ``dgm benchmark filter --help`` lists the fields.
        target: a new folder, whose name becomes the suite's.

    Raises:
        UserError: there is no such suite, a condition is wrong or no task meets them, or the target is in use.
    """
    suite_editing.filter_suite(str(name), where, Path(target))
    return suite(target)


def split_suite(
    name: str | Path,
    *,
    holdout: float,
    by: str,
    promotion: float = 0.0,
    seed: int = 0,
    target: str | Path | None = None,
) -> SuiteView:
    """Give a suite's tasks new splits.

    Args:
        name: a suite's name or folder.
        holdout: share that reports are made on, above 0 and below 1.
        by: ``time``: the newest are held out; ``repo``: whole libraries; ``random``: tasks of each kind.
        promotion: share that only accepts or rejects agents.
        seed: number that the choice follows from.
        target: a new folder for the suite with the new splits; None: the suite itself is changed.

    Raises:
        UserError: there is no such suite, it cannot be split so, the target is in use, or the suite is dgm's own and
            there is no target.
    """
    if by not in [each.value for each in SplitBy]:
        raise UserError(f"by {by!r}: there are {', '.join(SplitBy)}")
    shares = {Split.HOLDOUT: holdout, Split.PROMOTION: promotion}
    place = Path(target) if target is not None else None
    suite_editing.split_suite(str(name), shares, SplitBy(by), seed, place)
    return suite(target if target is not None else name)


def mine_benchmark(
    options: MiningOptions,
    *,
    sandbox: str = "auto",
    engine: str | Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    on_progress: Callable[[Funnel], None] = lambda _funnel: None,
) -> MiningReport:
    """Make a suite of verified tasks out of a git repository; blocks. The same call goes on where it was ended.

    Args:
        options: the repository, the suite's folder, and how much is mined.
        sandbox: ``auto``, or the name of an engine.
        engine: address of the Docker engine, or several; None: as the environment says.
        settings: of the model and the sandboxes.
        on_progress: is called with the stage and how far it is.

    Raises:
        UserError: the repository cannot be mined, or nothing of it is a task.
        Infrastructure: a sandbox or the model failed.
    """

    async def perform() -> MiningReport:
        model = options.statement_model
        chosen = resolve(None, assignments_of(settings), {"models.solve": model or None})
        with use_engine(engine):
            made = choose(sandbox, chosen)
        async with open_asking(model, chosen, made) as ask:
            return await mine(options, made, on_progress, ask)

    return block(lambda _: perform(), None)
