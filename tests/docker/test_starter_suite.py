"""Every starter task in real sandboxes: doing nothing fails, the reference passes, no hidden test shows."""

import asyncio

import pytest

from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import verify
from dgm.domain import Split
from dgm.errors import UserError
from dgm.paths import asset
from dgm.sandboxes.choose import choose
from tests.support.suite_on_disk import NoEngine

pytestmark = [pytest.mark.sandbox, pytest.mark.sampled]

FOLDER = asset("benchmarks", "starter")
SHOWN = SuiteBenchmark(FOLDER, NoEngine())
TASKS = [task.id for split in Split for task in SHOWN.tasks(split)]
VERIFIED = "1-59236f4ab930d271348360f6aa5da3e62611c6b5dc88e7f5975bc4738e03806c"
"""The version of which every task was found sound. Of another version all
tasks are looked at; once they are sound it is entered here."""
LABELS = {"dgm.run": "test-starter-suite"}


@pytest.fixture(scope="module")
def engine():
    """Bubblewrap first: it starts ten times as fast."""
    for name in ("bubblewrap", "docker"):
        try:
            return choose(name)
        except UserError as error:
            reason = str(error)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def suite(engine):
    return SuiteBenchmark(FOLDER, engine)


SPREAD = [
    pytest.param(task, marks=[pytest.mark.minutes] if SHOWN.version == VERIFIED and number % 12 else [])
    for number, task in enumerate(TASKS)
]
"""Every task; of the version that was found sound only each twelfth outside of the tests that take minutes."""


@pytest.mark.parametrize("task", SPREAD)
def test_task_is_sound(suite, engine, task):
    assert asyncio.run(verify(suite, task, LABELS)) == []
