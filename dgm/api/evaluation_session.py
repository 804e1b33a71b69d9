"""A session of an evaluation: its folder, what is missing in it, and its results.

An evaluation is a run in a folder of its own, performed by the loop of a search. A further session continues it: no
verdict is given, and nothing is paid, twice.
"""

import difflib
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dgm import assemble
from dgm.analysis.budgets import Ending, Reason
from dgm.api.watcher import Watcher
from dgm.archive.events import Recorded, RunStarted
from dgm.archive.run import Run, RunKind
from dgm.config import Settings
from dgm.config.resolving import leaves
from dgm.consents import remember_own
from dgm.domain import Budget, Split, Task, Usage
from dgm.errors import Hint, UserError
from dgm.evaluation.schedule import (
    AgentResult,
    EvaluationPlan,
    EvaluationProgress,
    collect_results,
    compare_first_attempts,
)
from dgm.models.reach import list_reach
from dgm.protocols import Benchmark
from dgm.search.loop import Search, perform_until_stopped
from dgm.search.start import check_models, note_checks
from dgm.views.evaluation import AgentEvaluation, EvaluationView, PairedTallies
from dgm.views.values import UsageView

DONE = Ending(Reason.NOTHING_LEFT, "all of it was done before")
OpenSearch = Callable[[Callable[[Recorded], None]], AbstractAsyncContextManager[Search]]
"""Function that opens a search and passes it a callback for its events."""


@dataclass(frozen=True, slots=True)
class EvaluationSession:
    """An evaluation that is open to write, prepared to its first model call."""

    run: Run
    benchmark: Benchmark
    split: str
    """Name of the split, ``all``, or ``submitted``."""
    model: str
    """Empty if no model is called."""
    names: Sequence[str]
    """Names of the agents, for people."""
    plan: EvaluationPlan
    tasks: Sequence[Task]
    open_search: OpenSearch
    missing: bool
    """True if an evaluation is missing."""
    settings: Settings | None = None
    """None if no model is called; else the costs are forecast."""

    def begin(self, usd: float | None) -> None:
        """Record that a session begins.

        Args:
            usd: limit over all sessions in USD; None: no limit.
        """
        tree, budget = self.run.tree, Budget(usd=usd)
        if self.run.kind is RunKind.EVALUATION:
            # Actions that were begun for an earlier plan are ended, too.
            begun = [*tree.pending.values(), *tree.to_redo().values()]
            missing = {*EvaluationProgress.read(self.run).missing(self.plan.wanted), *begun}
            budget = replace(budget, evaluations=tree.evaluations + len(missing))
        resumed = tree.evaluations > 0
        self.run.append(RunStarted(budget, self.plan.tasks, resumed=resumed, kernel=platform.release()))

    async def perform(self, watcher: Watcher) -> Ending:
        """Perform the missing evaluations; if none is missing, call no model and spend nothing."""
        if not self.missing:
            return DONE

        opening = self.open_search(watcher.event)
        with watcher.show(self.run, self.settings, dict(zip(self.plan.agents, self.names, strict=True))):
            return await perform_until_stopped(self.run, opening, watcher.begins)

    def results(self) -> Sequence[AgentResult]:
        """Return the results so far, of all sessions, in the order of ``names``."""
        return collect_results(self.run, self.plan)

    def view(self, ending: Ending) -> EvaluationView:
        """Return the results so far; ``ending`` is that of this session."""
        results = self.results()
        return EvaluationView(
            folder=str(self.run.folder),
            benchmark=self.benchmark.name,
            version=self.benchmark.version,
            split=self.split,
            model=self.model or None,
            tasks=len(self.tasks),
            attempts=self.plan.attempts,
            ended=ending.reason.value,
            message=ending.message,
            missing=sum(result.missing for result in results),
            agents=tuple(
                AgentEvaluation.of(name, result, self.tasks, self.plan.attempts)
                for name, result in zip(self.names, results, strict=True)
            ),
            comparison=PairedTallies.of(compare_first_attempts(*results)) if len(results) == 2 else None,
            spend=UsageView.of(sum((result.spend for result in results), Usage())),
        )


def select_tasks(
    benchmark: Benchmark, split: Split | None, names: Sequence[str], argument: str = "tasks"
) -> Sequence[Task]:
    """Return the tasks of a split (None: of all splits), or only the named ones of them.

    ``argument`` is the parameter that named them.

    Raises:
        UserError: there are none, or a named one is not among them.
    """
    tasks = [task for part in Split if split in (None, part) for task in benchmark.tasks(part)]
    if not tasks and split:
        sizes = ", ".join(f"{len(benchmark.tasks(other))} {other.value}" for other in Split)
        raise UserError(f"benchmark {benchmark.name!r} has no {split.value} task ({sizes})", argument="split")
    ids = {str(task.id) for task in tasks}
    for name in names:
        if name not in ids:
            part = f"the {split.value} split of " if split else ""
            raise UserError(
                f"{name} is not in {part}{benchmark.name!r}{_task_hint(benchmark, name)}",
                argument=argument,
                hint=Hint("all tasks", "benchmark show", (benchmark.name,)),
            )
    return [task for task in tasks if not names or task.id in names]


def _task_hint(benchmark: Benchmark, name: str) -> str:
    splits = {str(task.id): split.value for split in Split for task in benchmark.tasks(split)}
    if name in splits:
        return f", but in the {splits[name]} split"
    near = difflib.get_close_matches(name, splits, 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


def make_slug(text: str) -> str:
    """Return the text as a part of a folder's name."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-.")[:60]


async def open_evaluation(
    folder: Path,
    plan: Mapping[str, Any],
    settings: Settings,
    parts: assemble.RunParts,
    watcher: Watcher | None,
    kind: RunKind = RunKind.EVALUATION,
) -> Run:
    """Open the evaluation in a folder for writing; create it if there is none.

    Args:
        folder: of the evaluation.
        plan: the facts that must be the same in all of its sessions.
        settings: frozen in a new one.
        parts: frozen in a new one.
        watcher: hears of the models' checks; None: no model is called.
        kind: of a new run.

    Raises:
        UserError: the folder holds something else, or was begun with other settings.
        ArchiveBusy: another process is writing it.
    """
    if not (folder / "run.json").exists():
        checks = await check_models(settings) if watcher else ()
        if watcher:
            watcher.models_checked(settings, checks)
        remember_own(list_reach(settings))
        new = Run.create(folder, {**assemble.record_of(folder, settings, parts), "kind": kind, "plan": plan})
        if watcher:
            note_checks(new, settings, checks)
        return new
    run = Run.open(folder, write=True)
    try:
        _check_plan(run, kind, plan)
    except BaseException:
        run.close()
        raise
    return run


_CHANGES = {
    "version": "another version of the benchmark",
    "of": "agents of another run",
    "predictions": "other predictions",
    "requires": "agents that require other packages",
}


def _check_plan(run: Run, kind: RunKind, plan: Mapping[str, Any]) -> None:
    if run.kind is not kind:
        raise UserError(f"{run.folder} holds something else than an evaluation", argument="into")
    then, now = dict(leaves(run.plan)), dict(leaves(plan))
    for path in {**then, **now}:
        if then.get(path) != now.get(path):
            key = ".".join(path)
            other = _CHANGES.get(key, f"{key} {then.get(path)!r}, not {now.get(path)!r}")
            raise UserError(f"{run.folder} was begun with {other}; choose another folder", argument="into")
