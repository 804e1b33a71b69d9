"""Patches in the file formats of SWE-bench's own tools: predictions in and out, and the report on them.

A prediction is ``{"instance_id", "model_name_or_path", "model_patch"}``. Tasks of any benchmark can be graded
this way.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dgm.archive.durable import write_durably
from dgm.archive.history import evaluations_of
from dgm.archive.run import Run
from dgm.bounded_reading import parse_json
from dgm.domain import AgentId, Cost, Digest, Entry, Evaluation, Snapshot, TaskId, Verdict
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.evaluation.results import AgentResult
from dgm.folders import FOLDER_BYTES, read_file
from dgm.protocols import Benchmark, Grade
from dgm.search.orders import EvaluateOrder, Order

SUFFIXES = (".jsonl", ".json")
FIELDS = ("instance_id", "model_name_or_path", "model_patch")
SCHEMA = 2
"""Version of SWE-bench's report."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A model's patch for one task."""

    task: TaskId
    patch: str
    place: str
    """Its place in the file, for messages."""


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


def read_predictions(file: Path) -> Predictions:
    """Read the predictions of a ``.jsonl`` file, or of a ``.json`` file with a list (or a table by any key) of them.

    Raises:
        UserError: the file cannot be read, a row is no prediction, a task has two, or they are of several
            models.
    """
    _check_suffix(file)
    try:
        text = read_file(file, FOLDER_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 at byte {error.start}; predictions are JSON in UTF-8") from error
    found: dict[TaskId, Prediction] = {}
    models: dict[str, str] = {}
    for place, row in _iter_lines(file, text) if file.suffix == ".jsonl" else _iter_rows(file, text):
        one, model = _parse_prediction(place, row)
        if one.task in found:
            raise UserError(
                f"{place}: a second prediction for {one.task!r} (the first: {found[one.task].place}); keep one"
            )
        if models and model not in models:
            other, there = next(iter(models.items()))
            raise UserError(
                f"{place}: model_name_or_path is {model!r}, but {other!r} at {there}; a file holds one model's"
            )
        found[one.task] = one
        models.setdefault(model, place)
    if not found:
        raise UserError(f"{file}: holds no prediction")
    return Predictions(next(iter(models)), found)


def _check_suffix(file: Path) -> None:
    if file.suffix not in SUFFIXES:
        raise UserError(f"{file}: predictions are a .jsonl or a .json file; name it so")


_MOST = 1_000_000_000
"""Maximum size of a file in characters."""


def _iter_lines(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    # Split only at "\n": a JSON text may hold other line separators.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{file}:{number}"
            try:
                yield place, parse_json(line)
            except ValueError as error:
                raise UserError(f"{place}: not JSON: {error}") from error


def _iter_rows(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        document = parse_json(text, most_bytes=_MOST, most_values=_MOST)
    except ValueError as error:
        raise UserError(f"{file}: not JSON: {error}") from error
    if isinstance(document, dict):
        document = list(document.values())
    if not isinstance(document, list):
        raise UserError(f"{file}: expected a list of predictions, found {type(document).__name__}")
    for number, row in enumerate(document, 1):
        yield f"{file}: prediction {number}", row


def _parse_prediction(place: str, row: Any) -> tuple[Prediction, str]:  # noqa: ANN401  (whatever JSON holds)
    if not isinstance(row, dict):
        raise UserError(f"{place}: expected an object with {', '.join(FIELDS)}, found {type(row).__name__}")
    for field in FIELDS:
        if field not in row:
            raise UserError(f"{place}: no {field!r} (a prediction has {', '.join(FIELDS)})")
        # SWE-bench accepts null for an empty patch.
        if not isinstance(row[field], str) and (field != "model_patch" or row[field] is not None):
            raise UserError(f"{place}: {field} is a {type(row[field]).__name__}; expected a text")
        if not row[field] and field != "model_patch":
            raise UserError(f"{place}: {field} is empty")
    task, model, patch = row["instance_id"], row["model_name_or_path"], row["model_patch"] or ""
    try:
        f"{task}{model}{patch}".encode()
    except UnicodeEncodeError as error:
        raise UserError(f"{place}: holds half of a surrogate pair, which is no text") from error
    return Prediction(TaskId(task), patch, place), model


def check_known(predictions: Predictions, benchmark: Benchmark) -> None:
    """Check that every prediction is on a task of the benchmark.

    Raises:
        UserError: one is not; the message gives its place.
    """
    for one in predictions.by_task.values():
        try:
            benchmark.task(one.task)
        except UserError as error:
            raise UserError(f"{one.place}: {error}") from error


@dataclass(frozen=True, slots=True)
class Grader:
    """An executor of evaluations in which nobody works: it grades patches that exist already."""

    run: Run
    benchmark: Benchmark
    predictions: Predictions
    labels: Mapping[str, str]
    """Labels of the sandboxes that grade."""

    async def perform(self, order: Order) -> Evaluation:
        """Grade one prediction; return ``invalid`` if the infrastructure failed."""
        if not isinstance(order, EvaluateOrder):
            raise TypeError(f"predictions are only graded, not {order!r}")
        began = time.monotonic()
        what = order.action
        patch = self.predictions.by_task[what.task].patch.encode()
        traces = {"patch": await asyncio.to_thread(self.run.traces.put, patch, None)}
        try:
            grade = await self._graded(what.task, patch, traces)
        except AgentFault as fault:
            grade = Grade(Verdict.UNRESOLVED, f"{fault.stage}: {fault}", 0.0)
        except Infrastructure as error:
            grade = Grade(Verdict.INVALID, str(error), 0.0)
        cost = Cost(seconds=time.monotonic() - began, traces=traces)
        return Evaluation(what.agent, what.task, what.attempt, grade.verdict, grade.reason, grade.score, cost)

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


@dataclass(frozen=True, slots=True)
class ExportCounts:
    """Counts of the patches that were written and left out."""

    written: int
    elsewhere: int
    """Number left out: tasks of other benchmarks than SWE-bench, in a mixed run."""
    not_text: int
    """Number left out: patches that are not UTF-8, which the format cannot hold."""


def export_patches(
    run: Run, agent: AgentId, model: str, file: Path, instance_of: Callable[[TaskId], str | None]
) -> ExportCounts:
    """Write the patches of an agent's graded first attempts, all of them or nothing.

    Args:
        run: the run in which the agent was evaluated.
        agent: the agent there.
        model: the model's name in the predictions.
        file: a new ``.jsonl`` or ``.json`` file.
        instance_of: a task's id in its own benchmark; None if it is left out.

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
    return ExportCounts(len(lines), elsewhere, not_text)


def _read_patch(run: Run, evaluation: Evaluation) -> str | None:
    """Return the patch as a text: empty if the agent left no usable patch, None if it is not UTF-8."""
    digest = evaluation.cost.traces.get("patch")
    try:
        return run.traces.get(digest).decode("utf-8") if digest else ""
    except UnicodeDecodeError:
        return None


def _encode_line(instance: str, model: str, patch: str) -> bytes:
    return json.dumps(dict(zip(FIELDS, (instance, model, patch), strict=True))).encode()
