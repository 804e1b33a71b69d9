"""Every starter task in real sandboxes: doing nothing fails, the reference passes, no hidden test shows."""

import asyncio

import pytest

from dgm.benchmarks.suites import SuiteBenchmark
from dgm.benchmarks.verification import verify
from dgm.domain import Split, Verdict
from dgm.errors import UserError
from dgm.paths import asset
from dgm.sandboxes.choose import choose
from tests.support.suite_on_disk import NoEngine

pytestmark = pytest.mark.sandbox

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


def spread():
    """Every task; of the version that was found sound only each twelfth outside of the tests that take minutes."""
    known = SHOWN.version == VERIFIED
    for number, task in enumerate(TASKS):
        yield pytest.param(task, marks=[pytest.mark.minutes] if known and number % 12 else [])


@pytest.mark.parametrize("task", [*spread()])
def test_task_is_sound(suite, engine, task):
    assert asyncio.run(verify(suite, task, LABELS)) == []


def test_hostile_patch_is_unresolved_in_a_real_sandbox(suite):
    """Code that ends its process as soon as it is imported, in the first module of the task's library."""
    task = TASKS[0]
    package = suite.record(task).repo
    start = suite.workspace(task)[f"{package}/__init__.py"].data.decode()
    old = "".join(f"-{line}\n" for line in start.splitlines())
    head = f"diff --git a/{package}/__init__.py b/{package}/__init__.py\n--- a/{package}/__init__.py\n"
    hunk = f"+++ b/{package}/__init__.py\n@@ -1,{len(start.splitlines())} +1,2 @@\n"
    patch = f"{head}{hunk}{old}+import os\n+os._exit(0)\n".encode()
    graded = asyncio.run(suite.grade(task, patch, LABELS))
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, 0.0)
    assert "ended early" in graded.reason
