"""Grading of the patches of a file; no agent works and no model is called."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm import assemble
from dgm.archive.durable import write_durably
from dgm.archive.events import Recorded
from dgm.archive.finding import archive_folders
from dgm.archive.run import Run
from dgm.benchmarks.opening import make_paths_absolute
from dgm.config import Settings
from dgm.domain import Split, Task, TaskId
from dgm.errors import UserError
from dgm.evaluation.evaluating import EvaluationPlan, EvaluationProgress, Schedule, apply_assignments
from dgm.evaluation.exam import enter_under_key
from dgm.evaluation.predictions import Grader, Predictions, check_known, read_predictions, swebench_report
from dgm.protocols import Benchmark
from dgm.search.loop import LoopHooks, Search
from dgm.search.run_controller import RunController
from dgm.sessions.evaluation_folder import EvaluationSession, OpenSearch, make_slug, open_evaluation
from dgm.show.evaluate_rows import EvaluationReport
from dgm.this_machine import machine_name

NOBODY = "none"
"""Placeholder for a model's name."""
OPERATOR = "predictions"
REPORT = "report.json"
"""Name of SWE-bench's report in the evaluation's folder."""
SETTABLE = ("benchmarks", "grading", "limits", "workers", "sandbox")


@dataclass(frozen=True, slots=True)
class GradingRequest:
    """The predictions to grade, and the conditions."""

    file: Path
    benchmark: str
    split: str | None = None
    """Only predictions on its tasks; None: on all."""
    only: Sequence[str] = ()
    """Only predictions on these tasks; if empty, on all."""
    into: Path | None = None
    """The evaluation's folder; None: one of its own for these predictions."""
    workers: int | None = None
    sandbox: str | None = None
    assignments: Sequence[str] = ()
    """Settings in the form of ``--set``."""


@dataclass(frozen=True, slots=True)
class GradingSession:
    """Predictions that are ready to be graded."""

    session: EvaluationSession
    predictions: Predictions
    every: Sequence[TaskId]
    """The tasks of the benchmark, or of the split."""

    @property
    def left_out(self) -> int:
        """Number of predictions of the file that are not graded, as asked."""
        return len(self.predictions.by_task) - len(self.session.tasks)

    @property
    def absent(self) -> int:
        """Number of the benchmark's tasks without a prediction."""
        return len(set(self.every) - {task.id for task in self.session.tasks})

    def write_report(self, found: EvaluationReport) -> dict[str, Any]:
        """Write the results in the form of SWE-bench's harness into the evaluation's folder, and return them."""
        chosen = {task.id: self.predictions.by_task[task.id] for task in self.session.tasks}
        made = swebench_report(Predictions(self.predictions.model, chosen), found.results[0], self.every)
        write_durably(found.folder / REPORT, json.dumps(made, indent=4).encode() + b"\n")
        return made


async def prepare_grading(request: GradingRequest) -> GradingSession:
    """Find every error, and open the evaluation to write.

    Returns:
        The session; its run is closed by the caller.

    Raises:
        UserError: a prediction or another argument is wrong.
        ArchiveBusy: another process is writing the evaluation.
        Infrastructure: the sandboxes' engine failed.
    """
    predictions = read_predictions(request.file)
    settings = _build_settings(request)
    parts = assemble.parts_of(settings)
    check_known(predictions, parts.benchmark)
    tasks = _select_tasks(parts.benchmark, predictions, request.split, request.only, request.file)
    every = _list_task_ids(parts.benchmark, request.split)
    words = ["predictions", request.file.stem, parts.benchmark.name, predictions.digest[:8]]
    folder = request.into or next(archive_folders()).absolute() / "-".join(map(make_slug, words))
    plan = {
        "benchmark": parts.benchmark.name,
        "version": parts.benchmark.version,
        "predictions": predictions.digest,
        "benchmarks": settings.benchmarks.model_dump(mode="json"),
        "grading": settings.grading.model_dump(mode="json"),
    }
    made = await open_evaluation(folder, plan, settings, parts, None)
    try:
        agent = enter_under_key(made, predictions.model, predictions.source, OPERATOR)
        wanted = EvaluationPlan((agent,), tuple(task.id for task in tasks))
        session = EvaluationSession(
            made=made,
            benchmark=parts.benchmark,
            split=request.split or "submitted",
            model="",
            names=[predictions.model],
            wanted=wanted,
            tasks=tasks,
            searching=_searching(made, wanted, predictions, settings, parts),
            missing=bool(EvaluationProgress(made).missing(wanted)),
        )
        if session.missing:
            session.begin(None)
    except BaseException:
        made.close()
        raise
    return GradingSession(session, predictions, every)


def _searching(
    made: Run, wanted: EvaluationPlan, predictions: Predictions, settings: Settings, parts: assemble.RunParts
) -> OpenSearch:
    labels = {"dgm.run": str(made.config["id"]), "dgm.host": machine_name()}

    @asynccontextmanager
    async def searching(on_event: Callable[[Recorded], None]) -> AsyncIterator[Search]:
        await parts.engine.reap(labels)
        try:
            grader = Grader(made, parts.benchmark, predictions, labels)
            yield Search(
                RunController(made, settings), Schedule(wanted), grader, settings, LoopHooks(on_event)
            )
        finally:
            await asyncio.shield(parts.engine.reap(labels))

    return searching


def _build_settings(request: GradingRequest) -> Settings:
    base = Settings().model_dump(mode="json")
    own = {"workers": request.workers, "sandbox": request.sandbox, "benchmark": request.benchmark}
    base |= {key: value for key, value in own.items() if value is not None} | {"model": NOBODY}
    return make_paths_absolute(
        apply_assignments(base, request.assignments, SETTABLE, "dgm evaluate --predictions")
    )


def _select_tasks(
    benchmark: Benchmark, predictions: Predictions, split: str | None, only: Sequence[str], file: Path
) -> Sequence[Task]:
    """Return the tasks to grade, in the order of the file."""
    for name in only:
        if name not in predictions.by_task:
            raise UserError(f"--task {name}: {file} has no prediction for it")
    within = {task.id for task in benchmark.tasks(Split(split))} if split else set(predictions.by_task)
    chosen = [task for task in predictions.by_task if task in within and (not only or task in only)]
    if not chosen:
        raise UserError(f"{file}: no prediction is on a {split} task of {benchmark.name!r}")
    return [benchmark.task(task) for task in chosen]


def _list_task_ids(benchmark: Benchmark, split: str | None) -> Sequence[TaskId]:
    splits = [Split(split)] if split else list(Split)
    return [task.id for one in splits for task in benchmark.tasks(one)]
