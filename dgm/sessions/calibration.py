"""A suite calibrated: one agent tries every task several times, and the suite keeps how often each was resolved.

The evaluation is as any other, in a folder of its own, and goes on where it ended.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dgm.api.watcher import Watcher
from dgm.benchmarks.calibration import Calibration, task_digest, write_calibration
from dgm.benchmarks.opening import find_suite_folder
from dgm.benchmarks.suites import SuiteBenchmark, suite_names
from dgm.benchmarks.toml_table import suggestion
from dgm.domain import Verdict
from dgm.errors import UserError
from dgm.evaluation.evaluating import AgentResult
from dgm.paths import asset
from dgm.sessions.evaluation import EvaluationChoice, EvaluationRequest, make_request, read_contestant
from dgm.show.evaluate_rows import EvaluationReport, report_record


@dataclass(frozen=True, slots=True)
class CalibratedSuite:
    """The result of a calibration so far."""

    suite: Path
    found: EvaluationReport
    rows: Sequence[Calibration]
    """Tasks whose attempts were all graded."""

    @property
    def counts(self) -> dict[str, int]:
        """Outcome (``always``, ``sometimes``, ``never``) → number of tasks."""
        return dict(Counter(row.outcome for row in self.rows))

    def record(self) -> dict[str, Any]:
        """Return the document that ``dgm benchmark calibrate --json`` prints."""
        tasks = {row.task: row.outcome for row in self.rows}
        return {**report_record(self.found), "suite": str(self.suite), "calibrated": tasks}


def find_suite(name: str) -> Path:
    """Return the folder of a suite that can be written to.

    Raises:
        UserError: there is none, it is dgm's own, or it cannot be written to.
    """
    folder = find_suite_folder(name)
    if folder is None:
        hint = suggestion(name, suite_names())
        raise UserError(f"{name}: no suite's folder (one with a suite.toml){hint}")
    if folder.resolve().is_relative_to(asset("benchmarks").resolve()):
        raise UserError(
            f"{name}: is dgm's own suite, which stays as it is; copy it with "
            f"dgm benchmark filter {name} --where 'f2p>=0' --out DIR"
        )
    if not os.access(folder, os.W_OK):
        raise UserError(f"{folder}: cannot be written to, and the calibration is kept there")
    return folder


def make_calibration(
    suite: Path, agent: str, chosen: EvaluationChoice, watcher: Watcher
) -> EvaluationRequest:
    """Return the evaluation that a calibration is.

    Args:
        suite: the suite's folder.
        agent: name of a shipped agent, a folder, or a git repository.
        chosen: attempts, model, money and the like; its benchmark and split are the suite and all of it.
        watcher: is asked about a model that costs money.

    Raises:
        UserError: as ``make_request``, or there is no such agent.
    """
    contestant = read_contestant(agent)
    name = agent.rstrip("/").rpartition("/")[2].removesuffix(".git") or agent
    named = replace(contestant, name=f"{name} {contestant.key[:8]}")
    request = make_request(None, [named], replace(chosen, benchmark=str(suite), split=None), watcher)
    return replace(request, prefix=f"calibrate-{contestant.key[:8]}", named_model=True)


def keep_calibration(suite: Path, found: EvaluationReport) -> CalibratedSuite:
    """Write into a suite how often each task was resolved, if all its attempts were graded.

    Raises:
        UserError: the suite's calibration cannot be written.
    """
    opened, rows = found.benchmark, list[Calibration]()
    assert isinstance(opened, SuiteBenchmark)
    (result,), (agent,) = found.results, found.names
    for task, resolved in _count_resolved(result, found.attempts).items():
        digest = task_digest(suite, opened.record(task))
        rows.append(Calibration(str(task), digest, agent, found.model, found.attempts, resolved))
    if rows:
        write_calibration(suite, rows)
    return CalibratedSuite(suite, found, rows)


def _count_resolved(result: AgentResult, attempts: int) -> dict[Any, int]:
    tried = Counter(done.task for done in result.graded)
    resolved = Counter(done.task for done in result.graded if done.verdict is Verdict.RESOLVED)
    return {task: resolved[task] for task, times in tried.items() if times == attempts}
