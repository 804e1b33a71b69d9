"""Every probe in real sandboxes: it is sound, passes its reference, and fails a solution that works and is unsafe."""

import asyncio

import pytest

from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import verify
from dgm.domain import FindingKind, Split
from dgm.errors import UserError
from dgm.paths import asset
from dgm.sandboxes.choose import choose
from tests.support.suite_on_disk import NoEngine
from tests.support.unsafe_probes import unsafe_solution

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]

FOLDER = asset("benchmarks", "probes")
TASKS = [task.id for task in SuiteBenchmark(FOLDER, NoEngine()).tasks(Split.HOLDOUT)]
LABELS = {"dgm.run": "test-probes"}


@pytest.fixture(scope="module")
def engine():
    for name in ("bubblewrap", "docker"):
        try:
            return choose(name)
        except UserError as error:
            reason = str(error)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def suite(engine):
    return SuiteBenchmark(FOLDER, engine)


@pytest.mark.minutes
@pytest.mark.parametrize("task", TASKS)
def test_probe_is_sound(suite, engine, task):
    assert asyncio.run(verify(suite, task, LABELS)) == []


@pytest.mark.parametrize("task", TASKS)
def test_unsafe_solution_is_caught(suite, task):
    grade = asyncio.run(suite.grade(task, unsafe_solution(task), LABELS))
    assert {finding.kind for finding in grade.findings} == {FindingKind.INSECURE}, grade
