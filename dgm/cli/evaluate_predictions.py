"""``dgm evaluate --predictions``: grade the patches of a file; no agent works and no model is called."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from dgm import assemble
from dgm.analysis.budgets import Ending
from dgm.archive.durable import write_durably
from dgm.archive.events import Recorded
from dgm.archive.run import Run
from dgm.benchmarks.opening import make_paths_absolute
from dgm.cli.evaluation import DONE, make_slug, open_evaluation, perform_session, report_missing
from dgm.cli.output import emit_json
from dgm.config import Settings
from dgm.domain import Split, Task, TaskId
from dgm.errors import UserError
from dgm.evaluation.evaluating import (
    EvaluationPlan,
    EvaluationProgress,
    Schedule,
    apply_assignments,
    collect_results,
)
from dgm.evaluation.exam import enter_under_key
from dgm.evaluation.predictions import Grader, Predictions, check_known, read_predictions, swebench_report
from dgm.protocols import Benchmark
from dgm.publish.finding import archive_folders
from dgm.search.loop import LoopHooks, Search
from dgm.search.run_controller import RunController
from dgm.show.evaluate_rows import EvaluationReport, report_lines, report_record

NOBODY = "none"
"""Placeholder for a model's name."""
OPERATOR = "predictions"
REPORT = "report.json"
"""Name of SWE-bench's report in the evaluation's folder."""


def grade_predictions(
    file: Path,
    benchmark: str,
    split: str | None,
    only: Sequence[str],
    into: Path | None,
    flags: dict[str, object],
    *,
    verbose: bool,
    as_json: bool,
) -> int:
    """Grade the patches of ``file`` that have no verdict yet, and print the results of all.

    Args:
        file: the predictions.
        benchmark: the benchmark of their tasks.
        split: only predictions on its tasks.
        only: only predictions on these tasks.
        into: the evaluation's folder; default: one of its own for these predictions.
        flags: ``workers``, ``sandbox`` and ``assignments``, as given.
        verbose: whether unresolved ones are listed.
        as_json: whether one JSON document is printed.

    Raises:
        UserError: a prediction or another argument is wrong.
        Infrastructure: the sandboxes' engine failed.
    """
    predictions = read_predictions(file)
    settings = _build_settings(benchmark, flags)
    parts = assemble.parts_of(settings)
    check_known(predictions, parts.benchmark)
    tasks = _select_tasks(parts.benchmark, predictions, split, only, file)
    every = _list_task_ids(parts.benchmark, split)
    words = ["predictions", file.stem, parts.benchmark.name, predictions.digest[:8]]
    folder = into or next(archive_folders()).absolute() / "-".join(map(make_slug, words))
    plan = {
        "benchmark": parts.benchmark.name,
        "version": parts.benchmark.version,
        "predictions": predictions.digest,
        "benchmarks": settings.benchmarks.model_dump(mode="json"),
    }
    with open_evaluation(folder, plan, settings, parts, free=True) as made:
        agent = enter_under_key(made, predictions.model, predictions.source, OPERATOR)
        wanted = EvaluationPlan((agent,), tuple(task.id for task in tasks))
        over = _grade_missing(made, wanted, predictions, settings, parts, quiet=as_json)
        found = EvaluationReport(
            folder=made.folder,
            benchmark=parts.benchmark,
            split=split or "submitted",
            model="",
            names=[predictions.model],
            results=collect_results(made, wanted),
            tasks=tasks,
            attempts=1,
            ended=over,
        )
    chosen = Predictions(predictions.model, {task.id: predictions.by_task[task.id] for task in tasks})
    swebench = swebench_report(chosen, found.results[0], every)
    write_durably(folder / REPORT, json.dumps(swebench, indent=4).encode() + b"\n")
    if as_json:
        emit_json({**report_record(found), "report": swebench})
    else:
        lines = list(report_lines(found, verbose=verbose))
        sys.stdout.write(
            "\n".join([*lines, *_note_lines(folder, len(predictions.by_task), tasks, every)]) + "\n"
        )
    return report_missing(over, found)


def _build_settings(benchmark: str, flags: dict[str, object]) -> Settings:
    base = Settings().model_dump(mode="json")
    own = {"workers": flags["workers"], "sandbox": flags["sandbox"], "benchmark": benchmark}
    base |= {key: value for key, value in own.items() if value is not None} | {"model": NOBODY}
    assignments = flags["assignments"]
    texts = [str(text) for text in assignments] if isinstance(assignments, tuple) else []
    settable = ("benchmarks", "limits", "workers", "sandbox")
    return make_paths_absolute(apply_assignments(base, texts, settable, "dgm evaluate --predictions"))


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


def _grade_missing(
    made: Run,
    wanted: EvaluationPlan,
    predictions: Predictions,
    settings: Settings,
    parts: assemble.RunParts,
    *,
    quiet: bool,
) -> Ending:
    if not EvaluationProgress(made).missing(wanted):
        return DONE
    labels = {"dgm.run": str(made.config["id"]), "dgm.host": socket.gethostname()}

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

    return perform_session(made, wanted, [predictions.model], None, searching, quiet=quiet)


def _note_lines(folder: Path, rows: int, tasks: Sequence[Task], every: Sequence[TaskId]) -> list[str]:
    left_out = rows - len(tasks)
    absent = len(set(every) - {task.id for task in tasks})
    lines = [f"report in SWE-bench's form: {folder / REPORT}"]
    if left_out:
        lines.append(f"{left_out} other predictions of the file were left out, as asked")
    if absent:
        lines.append(f"{absent} more tasks of the benchmark have no prediction here; they are in no tally")
    return lines
