"""Three little repositories in SWE-bench's format, graded through the swebench package in network-less containers."""

import asyncio
import io
import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from dgm.benchmarks import swebench_grading
from dgm.benchmarks.formats import BenchmarkContext
from dgm.benchmarks.swebench import open_swebench
from dgm.config import BenchmarksSettings
from dgm.domain import Split, TaskId, Verdict
from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.choose import choose
from tests.docker.conftest import RUN

pytestmark = [pytest.mark.docker, pytest.mark.sandbox, pytest.mark.slow]

PLACE = Path(__file__).parent / "swebench"
ROWS = [json.loads(line) for line in (PLACE / "instances.jsonl").read_text(encoding="utf-8").splitlines()]
IDS = [row["instance_id"] for row in ROWS]
PATCHES = json.loads((PLACE / "patches.json").read_text(encoding="utf-8"))
TESTS = ("FAIL_TO_PASS", "PASS_TO_PASS")
DOCKERFILE = """\
FROM {base}
COPY repo /testbed
RUN cd /testbed && git init -q -b main && git add -A \\
    && git -c user.name=dgm -c user.email=dgm commit -q -m start \\
    && ln -sf /usr/bin/python3 /usr/local/bin/python
"""
LABELS = {"dgm.run": RUN}


@pytest.fixture(scope="module")
def engine():
    try:
        return choose("docker")
    except UserError as error:
        if os.environ.get("DGM_REQUIRE_DOCKER") == "1":
            pytest.fail(str(error))
        pytest.skip(f"NOT RUN: {error}")


@pytest.fixture(scope="module")
def suite(engine):
    """The instances; their images are built from the repositories beside them, without a registry."""
    base = engine.build("polyglot-python")
    for row in ROWS:
        _build(engine, row, base)
    return open_swebench(
        BenchmarkContext(f"swebench:{PLACE / 'instances.jsonl'}", engine, BenchmarksSettings())
    )


@pytest.fixture
def grade(suite):
    """Grades a patch for an instance."""
    return lambda instance, patch: asyncio.run(suite.grade(TaskId(instance), patch, LABELS))


def _build(engine, row, base):
    archive = io.BytesIO()
    name = row["repo"].partition("/")[2]
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(
            PLACE / "repos" / name, "repo", filter=lambda info: None if "__pycache__" in info.name else info
        )
        text = DOCKERFILE.format(base=base).encode()
        info = tarfile.TarInfo("Dockerfile")
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text))
    archive.seek(0)
    steps = engine.client.api.build(
        fileobj=archive, custom_context=True, tag=row["image"], network_mode="none", rm=True, decode=True
    )
    said = list(steps)
    assert "error" not in said[-1], said[-1]


def reference(instance):
    return next(row["patch"] for row in ROWS if row["instance_id"] == instance).encode()


@pytest.mark.parametrize("instance", IDS)
def test_reference_is_resolved(grade, instance):
    graded = grade(instance, reference(instance))
    assert (graded.verdict, graded.score) == (Verdict.RESOLVED, 1.0), (graded.reason, graded.log)


@pytest.mark.parametrize("instance", IDS[:2])
def test_wrong_patch_is_unresolved(grade, instance):
    graded = grade(instance, PATCHES[instance]["wrong"].encode())
    assert graded.verdict is Verdict.UNRESOLVED
    assert "tests that must pass fail" in graded.reason
    assert "broken" not in graded.reason


@pytest.mark.parametrize("instance", IDS[2:])
def test_patch_that_fixes_and_breaks_is_unresolved_at_score_zero(grade, instance):
    graded = grade(instance, PATCHES[instance]["breaking"].encode())
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, 0.0)
    assert "tests that passed are broken" in graded.reason


def test_patch_that_does_not_import_is_the_patchs_own_failure(grade):
    """No test runs with it, so the run without it decides whether the image is at fault."""
    broken = (
        b"--- a/ledger/__init__.py\n+++ b/ledger/__init__.py\n@@ -1 +1,2 @@\n+import os; os._exit(0)\n"
        b' """Accounts and what is booked on them."""\n'
    )
    graded = grade(IDS[1], broken)
    assert graded.verdict is Verdict.UNRESOLVED
    assert "no result in the tests' log" in graded.reason


def test_patch_that_does_not_fit_is_refused_with_gits_reason(grade):
    wrong = reference(IDS[0]).replace(b"-        self._items[name]", b"-        self.things[name]")
    reason = "the patch does not apply: error: patch failed: basket/__init__.py"
    assert grade(IDS[0], wrong).reason.startswith(reason)


def test_edits_to_hidden_tests_are_undone_by_the_script(grade):
    edited = (
        b"--- a/tests/test_ledger.py\n+++ b/tests/test_ledger.py\n@@ -1,1 +1,2 @@\n+raise SystemExit\n "
        + (PLACE / "repos" / "ledger" / "tests" / "test_ledger.py").read_bytes().split(b"\n")[0]
        + b"\n"
    )
    assert grade(IDS[1], reference(IDS[1]) + edited).verdict is Verdict.RESOLVED


def test_process_left_behind_does_not_hold_up_the_grading(grade):
    staying = (
        b"--- a/ledger/__init__.py\n+++ b/ledger/__init__.py\n@@ -1 +1,2 @@\n"
        b"+import subprocess; subprocess.Popen(['sleep', '3000'], start_new_session=True)\n"
        b' """Accounts and what is booked on them."""\n'
    )
    assert "tests that must pass fail" in grade(IDS[1], staying).reason


def test_image_without_the_test_runner_is_nobodys_failure(suite, engine):
    exam = suite.exam(TaskId(IDS[0]))
    exam = replace(exam, script=exam.script.replace("pytest", "no-such-runner"))
    with pytest.raises(Infrastructure, match="no test runs in its image, even without a patch"):
        asyncio.run(swebench_grading.grade(exam, reference(IDS[0]), engine, LABELS))


@pytest.mark.parametrize("letters", ["é", "漢字"])
def test_locale_that_the_image_lacks_is_utf8(suite, engine, letters):
    """Old Pythons take text for ASCII under a locale that is missing; ``wc -m`` does, too."""
    exam = suite.exam(TaskId(IDS[1]))
    count = f"printf {letters} | LC_ALL=en_US.UTF-8 wc -m\npython3 runtests.py"
    exam = replace(exam, script=exam.script.replace("python3 runtests.py", count))
    graded = asyncio.run(swebench_grading.grade(exam, reference(IDS[1]), engine, LABELS))
    assert graded.verdict is Verdict.RESOLVED
    assert f"\n{len(letters)}\n".encode() in graded.log


def test_hidden_tests_are_not_in_the_workspace_nor_in_what_is_shown(suite, grade):
    graded = grade(IDS[0], PATCHES[IDS[0]]["wrong"].encode())
    assert b"adding_an_item_again" in graded.shown
    assert b"basket.total() == 400" not in graded.shown + graded.log
    assert [task.id for task in suite.tasks(Split.SEARCH)] or suite.instances
