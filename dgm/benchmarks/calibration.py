"""The calibration of a suite by one agent: ``calibration.jsonl``, a line a task, beside ``suite.toml``.

It changes no verdict and is no part of a suite's version. Agents and policies do not see it. A line holds the digest of
its task, so that it counts no more once the task was changed.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from dgm.archive.repository import tree_id
from dgm.benchmarks.suite_files import TaskRecord
from dgm.bounded_reading import parse_json
from dgm.config.toml_files import parse_toml
from dgm.domain import TaskId
from dgm.errors import UserError
from dgm.folders import read_folder

FILE = "calibration.jsonl"
LINE_BYTES = 20_000
MOST_ATTEMPTS = 100
ALWAYS, SOMETIMES, NEVER = "always", "sometimes", "never"


@dataclass(frozen=True, slots=True)
class Calibration:
    """The attempts of one agent on one task."""

    task: str
    digest: str
    """``task_digest`` when it was tried."""
    agent: str
    """Name of the agent, for people."""
    model: str
    attempts: int
    resolved: int
    """Number of attempts that resolved it."""

    @property
    def outcome(self) -> str:
        """``always``, ``sometimes`` or ``never``."""
        return NEVER if not self.resolved else ALWAYS if self.resolved == self.attempts else SOMETIMES


def task_digest(suite: Path, record: TaskRecord) -> str:
    """Return a digest of a task's own files, limits and library; its split is no part of it.

    Args:
        suite: the suite's folder.
        record: the task's.
    """
    files = dict(read_folder(suite / "tasks" / record.id))
    told = parse_toml(files.pop("task.toml").data)
    told.pop("split", None)
    library = tree_id(read_folder(suite / "repos" / record.repo)) if record.repo else ""
    parts = [told, asdict(record.limits), tree_id(files), library]
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def read_calibration(suite: Path, records: Mapping[TaskId, TaskRecord]) -> Mapping[TaskId, Calibration]:
    """Return the calibrations of a suite's tasks that are as they were; empty if it was never calibrated.

    Raises:
        UserError: the file holds something else.
    """
    rows = _read_rows(suite / FILE)
    known = {TaskId(row.task): row for row in rows if row.task in records}
    return {
        task: row for task, row in sorted(known.items()) if row.digest == task_digest(suite, records[task])
    }


def write_calibration(suite: Path, rows: Iterable[Calibration]) -> None:
    """Write calibrations into a suite; a task's earlier one is replaced, those of other tasks stay.

    Raises:
        UserError: the file that is there holds something else, or cannot be written.
    """
    whole = {row.task: row for row in [*_read_rows(suite / FILE), *rows]}
    lines = [json.dumps(asdict(row), ensure_ascii=False) + "\n" for _, row in sorted(whole.items())]
    draft = suite / f".{FILE}.new"
    try:
        draft.write_text("".join(lines), encoding="utf-8")
        draft.replace(suite / FILE)
    except OSError as error:
        raise UserError(f"{suite / FILE}: cannot be written: {error.strerror}") from error


def _read_rows(file: Path) -> list[Calibration]:
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        return [_read_row(line, number) for number, line in enumerate(text.splitlines(), 1)]
    except (OSError, ValueError) as error:
        raise UserError(f"{file}: not what dgm wrote ({error}); remove it, and calibrate again") from error


def _read_row(line: str, number: int) -> Calibration:
    given = parse_json(line, most_bytes=LINE_BYTES)
    wanted = {field.name: field.type for field in fields(Calibration)}
    if not isinstance(given, dict) or {key: type(value) for key, value in given.items()} != wanted:
        raise ValueError(f"line {number}: expected {', '.join(wanted)}")
    row = Calibration(**given)
    if not 0 <= row.resolved <= row.attempts or not 1 <= row.attempts <= MOST_ATTEMPTS:
        raise ValueError(f"line {number}: {row.resolved} of {row.attempts} attempts")
    return row
