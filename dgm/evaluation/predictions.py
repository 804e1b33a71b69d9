"""Patches in the file formats of SWE-bench's own tools: predictions in and out, and the report on them.

A prediction is ``{"instance_id", "model_name_or_path", "model_patch"}``. Tasks of any benchmark can be graded
this way.
"""

import asyncio
import hashlib
import json
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from dgm.archive.durable import write_durably
from dgm.archive.run import Run, evaluations_of
from dgm.domain import (
    Action,
    ActionId,
    AgentId,
    Cost,
    Digest,
    Entry,
    Evaluate,
    Evaluation,
    Snapshot,
    TaskId,
    Verdict,
)
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.evaluation.schedule import AgentResult
from dgm.folders import FOLDER_BYTES, read_file
from dgm.protocols import Benchmark, Grade

SUFFIXES = (".jsonl", ".json")
FIELDS = ("instance_id", "model_name_or_path", "model_patch")
SCHEMA = 2
"""Version of SWE-bench's report."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A model's patch for one task."""

    task: TaskId
    patch: str
    position: str
    """File and line, for messages."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file of predictions, checked; each task has at most one."""

    model: str
    by_task: Mapping[TaskId, Prediction]

    @property
    def digest(self) -> str:
        """SHA-256 of the predictions, independent of the file's layout."""
        return hashlib.sha256(self.as_jsonl()).hexdigest()

    def as_jsonl(self) -> bytes:
        """Return the predictions in SWE-bench's format, one a line."""
        return b"".join(
            _encode_line(one.task, self.model, one.patch) + b"\n"
            for one in sorted(self.by_task.values(), key=lambda one: one.task)
        )

    def source(self) -> Snapshot:
        """Return the files that stand in for an agent where nobody worked."""
        return {"predictions.jsonl": Entry(self.as_jsonl())}


class _Row(msgspec.Struct):
    instance_id: Annotated[str, msgspec.Meta(min_length=1)]
    model_name_or_path: Annotated[str, msgspec.Meta(min_length=1)]
    model_patch: str | None
    """Null, which SWE-bench accepts, means an empty patch."""


def read_predictions(file: Path) -> Predictions:
    """Read the predictions of a ``.jsonl`` file, or of a ``.json`` file with a list (or a table by any key) of them.

    Raises:
        UserError: the file cannot be read, a row is no prediction, a task has two, or they are of several
            models.
    """
    _check_suffix(file)
    by_task: dict[TaskId, Prediction] = {}
    models: dict[str, str] = {}
    for position, row in _iter_rows(file):
        task, model = TaskId(row.instance_id), row.model_name_or_path
        if task in by_task:
            raise UserError(
                f"{position}: a second prediction for {task!r} (the first: {by_task[task].position}); keep one"
            )
        if models and model not in models:
            other, first = next(iter(models.items()))
            raise UserError(
                f"{position}: model_name_or_path is {model!r}, but {other!r} at {first}; a file holds one model's"
            )
        by_task[task] = Prediction(task, row.model_patch or "", position)
        models.setdefault(model, position)
    if not by_task:
        raise UserError(f"{file}: holds no prediction")
    return Predictions(next(iter(models)), by_task)


def _check_suffix(file: Path) -> None:
    if file.suffix not in SUFFIXES:
        raise UserError(f"{file}: predictions are a .jsonl or a .json file; name it so")


def _iter_rows(file: Path) -> Iterator[tuple[str, _Row]]:
    data, position = read_file(file, FOLDER_BYTES).removeprefix(BOM_UTF8), str(file)
    try:
        if file.suffix == ".jsonl":
            # Split only at "\n": a JSON text may hold other line separators.
            for number, line in enumerate(data.split(b"\n"), 1):
                if line.strip():
                    position = f"{file}:{number}"
                    yield position, msgspec.json.decode(line, type=_Row)
            return
        document = msgspec.json.decode(data, type=list[Any] | dict[str, Any])
        for number, row in enumerate(document.values() if isinstance(document, dict) else document, 1):
            position = f"{file}: prediction {number}"
            yield position, msgspec.convert(row, _Row)
    except ValueError as error:
        raise UserError(
            f"{position}: no prediction: {error} (it is JSON with {', '.join(FIELDS)})"
        ) from error


def check_known(predictions: Predictions, benchmark: Benchmark) -> None:
    """Check that every prediction is on a task of the benchmark.

    Raises:
        UserError: one is not; the message gives its line.
    """
    for one in predictions.by_task.values():
        try:
            benchmark.task(one.task)
        except UserError as error:
            raise UserError(f"{one.position}: {error}") from error


@dataclass(frozen=True, slots=True)
class Grader:
    """An executor of evaluations in which nobody works: it grades patches that exist already."""

    run: Run
    benchmark: Benchmark
    predictions: Predictions
    labels: Mapping[str, str]
    """Labels of the sandboxes that grade."""

    async def perform(self, action: ActionId, what: Action) -> Evaluation:  # noqa: ARG002  (grading asks no model)
        """Grade one prediction; return ``invalid`` if the infrastructure failed."""
        if not isinstance(what, Evaluate):
            raise TypeError(f"predictions are only graded, not {what!r}")
        began = time.monotonic()
        patch = self.predictions.by_task[what.task].patch.encode()
        traces = {"patch": await asyncio.to_thread(self.run.traces.put, patch, None)}
        try:
            grade = await self._graded(what.task, patch, traces)
        except AgentFault as fault:
            grade = Grade(Verdict.UNRESOLVED, f"{fault.stage}: {fault}", 0.0)
        except Infrastructure as error:
            grade = Grade(Verdict.INVALID, str(error), 0.0)
        cost = Cost(seconds=time.monotonic() - began, traces=traces)
        graded = (what.agent, what.task, what.attempt, grade.verdict, grade.reason, grade.score)
        return Evaluation(*graded, cost, grade.findings)

    async def _graded(self, task: TaskId, patch: bytes, traces: dict[str, Digest]) -> Grade:
        grade = await self.benchmark.grade(task, patch, self.labels)
        traces["tests"] = await asyncio.to_thread(self.run.traces.put, grade.log)
        traces["failures"] = await asyncio.to_thread(self.run.traces.put, grade.shown)
        return grade


def swebench_report(predictions: Predictions, result: AgentResult, every: Sequence[TaskId]) -> dict[str, Any]:
    """Return the results of predictions in the form of SWE-bench's harness.

    Args:
        predictions: those that were to be graded.
        result: of the evaluation.
        every: the tasks that the benchmark has.
    """
    submitted = set(predictions.by_task)
    empty = {task for task, one in predictions.by_task.items() if not one.patch}
    done = {task: grade.verdict for task, grade in result.first.items() if task not in empty}
    errors = submitted & set(result.abandoned) - empty
    ids = {
        "completed": set(done),
        # No prediction, or not graded yet.
        "incomplete": {*every, *submitted} - set(done) - empty - errors,
        "empty_patch": empty,
        "submitted": submitted,
        "resolved": {task for task, verdict in done.items() if verdict is Verdict.RESOLVED},
        "unresolved": {task for task, verdict in done.items() if verdict is Verdict.UNRESOLVED},
        "error": errors,
    }
    counted = ("submitted", "completed", "resolved", "unresolved", "empty_patch", "error")
    return {
        "total_instances": len({*every, *submitted}),
        **{f"{name}_instances": len(ids[name]) for name in counted},
        **{f"{name}_ids": sorted(tasks) for name, tasks in ids.items()},
        "schema_version": SCHEMA,
    }


def export_patches(
    run: Run, agent: AgentId, model: str, file: Path, instance_of: Callable[[TaskId], str | None]
) -> dict[str, int]:
    """Write the patches of an agent's graded first attempts, all of them or nothing.

    Args:
        run: the run in which the agent was evaluated.
        agent: the agent there.
        model: the model's name in the predictions.
        file: a new ``.jsonl`` or ``.json`` file.
        instance_of: a task's id in its own benchmark; None if it is left out.

    Returns:
        Numbers of the ``predictions`` that were written, and of patches left out: of ``other_benchmarks`` than
        SWE-bench in a mixed run, and ``not_text``: not UTF-8, which the format cannot hold.

    Raises:
        UserError: there is nothing to write, or it cannot be written there.
        ArchiveCorrupt: a patch is missing or damaged.
    """
    _check_suffix(file)
    if file.exists():
        raise UserError(f"{file}: already exists; choose another name")
    if not file.parent.is_dir():
        raise UserError(f"{file}: no such folder {file.parent}")
    rows: dict[str, bytes] = {}
    elsewhere = not_text = 0
    for evaluation in evaluations_of(run, agent).values():
        if evaluation.attempt:
            continue
        instance = instance_of(evaluation.task)
        patch = _read_patch(run, evaluation)
        if instance is None:
            elsewhere += 1
        elif patch is None:
            not_text += 1
        else:
            # An instance may be in two parts of a mixed benchmark; the format has room for one.
            rows.setdefault(instance, _encode_line(instance, model, patch))
    if not rows:
        raise UserError(f"run {run.name}: agent {agent} has no graded evaluation that can be a prediction")
    lines = list(rows.values())
    text = b"\n".join(lines) if file.suffix == ".jsonl" else b"[\n" + b",\n".join(lines) + b"\n]"
    write_durably(file, text + b"\n")
    return {"predictions": len(lines), "other_benchmarks": elsewhere, "not_text": not_text}


def _read_patch(run: Run, evaluation: Evaluation) -> str | None:
    """Return the patch as a text: empty if the agent left no usable patch, None if it is not UTF-8."""
    digest = evaluation.cost.traces.get("patch")
    try:
        return run.traces.get(digest).decode("utf-8") if digest else ""
    except UnicodeDecodeError:
        return None


def _encode_line(instance: str, model: str, patch: str) -> bytes:
    return json.dumps(dict(zip(FIELDS, (instance, model, patch), strict=True))).encode()
