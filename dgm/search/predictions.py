"""Patches as files that SWE-bench's own tools read and write: predictions in and out, and the report on them.

A prediction is ``{"instance_id", "model_name_or_path", "model_patch"}``. Any benchmark's tasks can be graded so.
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
from dgm.domain import AgentId, Cost, Digest, Entry, Evaluation, Snapshot, TaskId, Verdict
from dgm.errors import AgentFault, Infrastructure, UserError
from dgm.protocols import Benchmark, Grade
from dgm.search.evaluating import Result
from dgm.search.orders import EvaluateOrder, Order

SUFFIXES = (".jsonl", ".json")
FIELDS = ("instance_id", "model_name_or_path", "model_patch")
SCHEMA = 2
"""Of SWE-bench's report."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a model says about one task."""

    task: TaskId
    patch: str
    place: str
    """Where it stands, for messages."""


@dataclass(frozen=True, slots=True)
class Predictions:
    """A file of predictions, checked; each task has at most one."""

    model: str
    by_task: Mapping[TaskId, Prediction]

    @property
    def digest(self) -> str:
        """Of what they say, however the file is laid out."""
        return hashlib.sha256(self.as_jsonl()).hexdigest()

    def as_jsonl(self) -> bytes:
        """In SWE-bench's format, a line each."""
        return b"".join(
            _line(one.task, self.model, one.patch) + b"\n"
            for one in sorted(self.by_task.values(), key=lambda one: one.task)
        )

    def source(self) -> Snapshot:
        """What stands in an agent's place where nobody worked."""
        return {"predictions.jsonl": Entry(self.as_jsonl())}


def read_predictions(file: Path) -> Predictions:
    """The predictions of a ``.jsonl`` file, or of a ``.json`` file with a list (or a table by any key) of them.

    Raises:
        UserError: the file cannot be read, a row is none, a task has two, or they are of several models.
    """
    _check_suffix(file)
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 at byte {error.start}; predictions are JSON in UTF-8") from error
    found: dict[TaskId, Prediction] = {}
    models: dict[str, str] = {}
    for place, row in _lines(file, text) if file.suffix == ".jsonl" else _rows(file, text):
        one, model = _prediction(place, row)
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


def _lines(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    # Only at "\n": a JSON text may hold other separators of lines.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{file}:{number}"
            try:
                yield place, json.loads(line)
            except (ValueError, RecursionError) as error:
                raise UserError(f"{place}: not JSON: {error}") from error


def _rows(file: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file}: not JSON: {error}") from error
    if isinstance(document, dict):
        document = list(document.values())
    if not isinstance(document, list):
        raise UserError(f"{file}: expected a list of predictions, found {type(document).__name__}")
    for number, row in enumerate(document, 1):
        yield f"{file}: prediction {number}", row


def _prediction(place: str, row: Any) -> tuple[Prediction, str]:  # noqa: ANN401  (whatever JSON holds)
    if not isinstance(row, dict):
        raise UserError(f"{place}: expected an object with {', '.join(FIELDS)}, found {type(row).__name__}")
    for field in FIELDS:
        if field not in row:
            raise UserError(f"{place}: no {field!r} (a prediction has {', '.join(FIELDS)})")
        # SWE-bench takes null for a patch that is empty.
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
    """Checks that every prediction is on a task of the benchmark.

    Raises:
        UserError: one is not; says where it stands.
    """
    for one in predictions.by_task.values():
        try:
            benchmark.task(one.task)
        except UserError as error:
            raise UserError(f"{one.place}: {error}") from error


@dataclass(frozen=True, slots=True)
class Grader:
    """Performs evaluations in which nobody works: the patch is there already, and is graded."""

    run: Run
    benchmark: Benchmark
    predictions: Predictions
    labels: Mapping[str, str]
    """Of the sandboxes that grade."""

    async def perform(self, order: Order) -> Evaluation:
        """Grades one prediction; an evaluation that the infrastructure failed is ``invalid``."""
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


def report(predictions: Predictions, result: Result, every: Sequence[TaskId]) -> dict[str, Any]:
    """What came of predictions, as SWE-bench's harness reports it.

    Args:
        predictions: those that were to be graded.
        result: what came of them.
        every: the tasks that the benchmark has.
    """
    submitted = set(predictions.by_task)
    empty = {task for task, one in predictions.by_task.items() if not one.patch}
    done = {task: grade.verdict for task, grade in result.first.items() if task not in empty}
    errors = submitted & set(result.given_up) - empty
    ids = {
        "completed": set(done),
        # Without a prediction, or not graded yet.
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
class Exported:
    """What was written, and what was not."""

    written: int
    elsewhere: int
    """Left out: tasks of other benchmarks than SWE-bench, in a mixed run."""
    not_text: int
    """Left out: patches that are not UTF-8, which the format cannot hold."""


def export(
    run: Run, agent: AgentId, model: str, file: Path, instance_of: Callable[[TaskId], str | None]
) -> Exported:
    """Writes the patches of an agent's graded first attempts, all of them or nothing.

    Args:
        run: that the agent was evaluated in.
        agent: the agent there.
        model: what the predictions are to be known as.
        file: a new ``.jsonl`` or ``.json`` file.
        instance_of: a task's id in its own benchmark; None where it is left out.

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
        patch = _patch(run, evaluation)
        if instance is None:
            elsewhere += 1
        elif patch is None:
            not_text += 1
        else:
            # An instance that is in two parts of a mixed benchmark: the format has room for one.
            rows.setdefault(instance, _line(instance, model, patch))
    if not rows:
        raise UserError(f"run {run.name}: agent {agent} has no graded evaluation that can be a prediction")
    lines = list(rows.values())
    text = b"\n".join(lines) if file.suffix == ".jsonl" else b"[\n" + b",\n".join(lines) + b"\n]"
    write_durably(file, text + b"\n")
    return Exported(len(lines), elsewhere, not_text)


def _patch(run: Run, evaluation: Evaluation) -> str | None:
    """The patch as a text; empty where the agent left none that could be used."""
    digest = evaluation.cost.traces.get("patch")
    try:
        return run.traces.get(digest).decode("utf-8") if digest else ""
    except UnicodeDecodeError:
        return None


def _line(instance: str, model: str, patch: str) -> bytes:
    return json.dumps(dict(zip(FIELDS, (instance, model, patch), strict=True))).encode()
