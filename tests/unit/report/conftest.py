"""Runs that reports are made of, without an engine."""

from pathlib import Path

import pytest

from dgm.analysis.best import best_of
from dgm.analysis.operator_accounts import operators_of
from dgm.archive.run import Run
from dgm.report.facts import ReportLimits, gather_report
from dgm.report.headline import read_findings
from tests.support.runs.hostile import hostile_folder  # noqa: F401  (a fixture)
from tests.support.runs.paid import small


def facts(run: Run, **limits: int):
    """All that a report says of a run."""
    best = best_of(run)
    found = read_findings(run, run.tree.agents[best])
    return gather_report(run, best, found, operators_of(run), ReportLimits(**limits))


@pytest.fixture
def paid(tmp_path: Path):
    """Three agents, every kind of failure, money spent; no examination."""
    made = small(tmp_path / "paid")
    yield made
    made.run.close()


@pytest.fixture(scope="module")
def hostile(hostile_folder):  # noqa: F811
    """The facts of a run in which every text is hostile."""
    with Run.open(hostile_folder) as run:
        yield facts(run)
