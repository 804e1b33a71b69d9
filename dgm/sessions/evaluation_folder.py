"""The folder of an evaluation and a session in it, shared by evaluations of agents and of prediction files."""

import difflib
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm import assemble
from dgm.analysis.budgets import Ending, Reason
from dgm.api.watcher import Watcher
from dgm.archive.begun_checks import begin_checks, end_checks
from dgm.archive.events import Recorded, RunStarted
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.consents import remember_own
from dgm.domain import AgentId, Budget, Split, Task
from dgm.errors import UserError
from dgm.evaluation.evaluating import (
    PLAN,
    EvaluationPlan,
    EvaluationProgress,
    collect_results,
    count_expected,
)
from dgm.models.reach import list_reach
from dgm.protocols import Benchmark
from dgm.search.loop import Search
from dgm.search.model_checks import check_models, note_checks, worst_of_checks
from dgm.search.stopping import perform_until_stopped
from dgm.show.evaluate_rows import EvaluationReport

DONE = Ending(Reason.NOTHING_LEFT, "all of it was done before")
OpenSearch = Callable[[Callable[[Recorded], None]], AbstractAsyncContextManager[Search]]
"""Function that opens a search and passes it a callback for its events."""


@dataclass(frozen=True, slots=True)
class EvaluationSession:
    """An evaluation that is open to write, prepared to its first model call."""

    made: Run
    benchmark: Benchmark
    split: str
    """Name of the split, ``all``, or ``submitted``."""
    model: str
    """Name of the model; empty if none is called."""
    names: Sequence[str]
    """Names of the agents, for people."""
    wanted: EvaluationPlan
    tasks: Sequence[Task]
    searching: OpenSearch
    missing: bool
    """Whether an evaluation is left to perform."""

    @property
    def called(self) -> Mapping[AgentId, str]:
        """Agent → its name for people."""
        return dict(zip(self.wanted.agents, self.names, strict=True))

    def begin(self, usd: float | None) -> None:
        """Record that a session begins on what is missing.

        Args:
            usd: limit over all sessions in USD; None: no limit.
        """
        expected = count_expected(self.made, EvaluationProgress(self.made).missing(self.wanted))
        budget = Budget(evaluations=expected, usd=usd)
        self.made.append(
            RunStarted(
                budget, self.wanted.tasks, resumed=self.made.tree.evaluations > 0, kernel=platform.release()
            )
        )

    async def perform(self, watcher: Watcher) -> Ending:
        """Perform the missing evaluations; if none is missing, call no model and spend nothing.

        Raises:
            asyncio.CancelledError: stopped at once; nothing recorded is lost.
        """
        if not self.missing:
            return DONE

        async def work(begins: Callable[[Search], None]) -> Ending:
            async with self.searching(watcher.event) as search:
                begins(search)
                watcher.begins(search)
                return await search.go()

        return await perform_until_stopped(self.made, work)

    def report(self, ended: Ending) -> EvaluationReport:
        """Return the results so far, of this session and of earlier ones."""
        return EvaluationReport(
            folder=self.made.folder,
            benchmark=self.benchmark,
            split=self.split,
            model=self.model,
            names=self.names,
            results=collect_results(self.made, self.wanted),
            tasks=self.tasks,
            attempts=self.wanted.attempts,
            ended=ended,
        )


def select_tasks(benchmark: Benchmark, split: Split | None, names: Sequence[str]) -> Sequence[Task]:
    """Return the split's tasks, those of all splits for None, or only the named ones of them.

    Raises:
        UserError: there are none, or a named one is not among them.
    """
    tasks = [task for each in Split if split in (None, each) for task in benchmark.tasks(each)]
    if not tasks and split:
        sizes = ", ".join(f"{len(benchmark.tasks(other))} {other.value}" for other in Split)
        raise UserError(
            f"benchmark {benchmark.name!r} has no {split.value} task ({sizes}); choose another --split"
        )
    for name in names:
        if name not in {task.id for task in tasks}:
            raise UserError(
                f"--task {name}: not in {f'the {split.value} split of ' if split else ''}{benchmark.name!r}"
                f"{_task_hint(benchmark, name)}"
            )
    return [task for task in tasks if not names or task.id in names]


def _task_hint(benchmark: Benchmark, name: str) -> str:
    splits = {str(task.id): split.value for split in Split for task in benchmark.tasks(split)}
    if name in splits:
        return f", but in the {splits[name]} split; give --split {splits[name]}"
    near = difflib.get_close_matches(name, splits, 1)
    return f" (did you mean {near[0]!r}?)" if near else f" (see dgm benchmark show {benchmark.name})"


def make_slug(text: str) -> str:
    """Return the text as a part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:60]


async def open_evaluation(
    folder: Path,
    plan: Mapping[str, Any],
    settings: Settings,
    parts: assemble.RunParts,
    watcher: Watcher | None,
) -> Run:
    """Open the evaluation in this folder for writing; create it if there is none.

    Args:
        folder: its place, whether it exists or not.
        plan: the facts that must be the same in all of its sessions.
        settings: frozen in a new one.
        parts: frozen in a new one.
        watcher: is told of the models' checks; None: no model is called.

    Raises:
        UserError: the folder holds something else, or was begun with other settings.
        ArchiveBusy: another process is writing it.
    """
    if not (folder / "run.json").exists():
        checks = await check_models(settings) if watcher else ()
        if watcher:
            watcher.models_checked(settings, checks)
        remember_own(list_reach(settings))
        new = Run.create(folder, {**assemble.record_of(folder, settings, parts), PLAN: plan})
        if watcher:
            note_checks(new, settings, checks)
        return new
    made = Run.open(folder, write=True)
    try:
        _check_plan(made, plan)
    except BaseException:
        made.close()
        raise
    return made


async def check_again(made: Run, settings: Settings, watcher: Watcher) -> None:
    """Make one small real call to every model for a further session, and record what it cost.

    A check that a kill cuts off is counted later.

    Raises:
        UserError: a person must act.
        Infrastructure: a model does not answer now.
    """
    begin_checks(made.folder, worst_of_checks(settings))
    try:
        checks = await check_models(settings, made.tree.model_facts.abilities)
    except UserError:
        # The call was refused, or none was made.
        end_checks(made.folder, counted=False)
        raise
    watcher.models_checked(settings, checks)
    note_checks(made, settings, checks)


def _check_plan(made: Run, plan: Mapping[str, Any]) -> None:
    before = made.config.get(PLAN)
    if before is None:
        raise UserError(
            f"{made.folder}: holds something else than an evaluation; choose another folder with --into"
        )
    then, now = dict(_iter_leaves(before)), dict(_iter_leaves(plan))
    for key in {**then, **now}:
        if then.get(key) != now.get(key):
            what = {
                "version": "another version of the benchmark",
                "of": "agents of another run",
                "predictions": "other predictions",
                "requires": "agents that require other packages",
            }
            other = what.get(key, f"{key} {then.get(key)!r}, not {now.get(key)!r}")
            raise UserError(
                f"{made.folder}: was begun with {other}; record this in another folder with --into"
            )


def _iter_leaves(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _iter_leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value
