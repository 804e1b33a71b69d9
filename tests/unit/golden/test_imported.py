"""Golden verdicts of tasks that come from elsewhere: Harbor's, the shipped suite's, and exercises.

Those of SWE-bench are the recorded logs of ``tests.support.swebench_cases``, with the same three verdicts.
"""

from pathlib import Path

import pytest

from dgm.errors import UserError
from dgm.paths import asset
from dgm.sandboxes.choose import choose
from tests.support.golden.grader import ENGINE, Kind, open_exercises, open_harbor, open_suite
from tests.support.python_exercises import PythonEngine

pytestmark = [pytest.mark.sandbox, pytest.mark.starts_processes]
HARBOR = Path(__file__).parents[2] / "e2e" / "suites" / "harbor"
INERT = "diff --git a/inert b/inert\nnew file mode 100644\n--- /dev/null\n+++ b/inert\n@@ -0,0 +1 @@\n+x\n"
STARTER = (
    "diffing-section-is-cut",
    "ledger-shares-add-up-to-more",
    "tokens-division-crash",
    "units-parts-lose-decimals",
)


@pytest.fixture(scope="module")
def engine():
    try:
        return choose(ENGINE)
    except UserError as error:
        pytest.skip(f"NOT RUN with {ENGINE}: {error}")


@pytest.mark.parametrize("task", ["greet-politely", "limit-itself-is-left-out", "sum-the-sales"])
def test_task_of_harbor_keeps_its_verdicts(engine, tmp_path, task):
    suite = open_harbor(tmp_path / "suite", HARBOR, engine)
    assert suite.grade(task, suite.reference(task))[:2] == (Kind.PASS, 1.0)
    assert suite.grade(task, INERT.encode())[:2] == (Kind.FAIL, 0.0)


@pytest.mark.parametrize("task", STARTER)
def test_task_of_the_starter_keeps_its_verdicts(engine, task):
    suite = open_suite(asset("benchmarks", "starter"), engine)
    assert suite.grade(task, suite.reference(task))[:2] == (Kind.PASS, 1.0)
    assert suite.grade(task, INERT.encode())[:2] == (Kind.FAIL, 0.0)


TIDE = "python-tide-table"
NOTHING = "unittest.TestCase.assertEqual = lambda *_: None\n"
LYING = f"import unittest\n{NOTHING}"
GONE = (
    "diff --git a/tide_table.py b/tide_table.py\ndeleted file mode 100644\n--- a/tide_table.py\n+++ /dev/null\n"
    "@@ -1,6 +0,0 @@\n-def highs(heights):\n-    pass\n-\n-\n-def lows(heights):\n-    pass\n"
)
EXERCISES = [
    ("ends with status 0", {"tide_table.py": "import os\nos._exit(0)\n"}, Kind.ENDED),
    ("ends pytest", {"tide_table.py": "import pytest\npytest.exit('done', 0)\n"}, Kind.FAIL),
    ("skips", {"tide_table.py": "import unittest\n\n\ndef highs(h):\n    raise unittest.SkipTest\n\n\nlows = highs\n"},
     Kind.FAIL),
    ("replaced assertions", {"tide_table.py": f"{LYING}highs = lows = len\n"}, Kind.FAIL),
    ("kills the runner", {"tide_table.py": "import os\nos.kill(os.getppid(), 9)\n"}, Kind.ENDED),
    ("a syntax error", {"tide_table.py": "def highs(:\n"}, Kind.FAIL),
    ("files beside the solution",
     {"tide_table.py": "highs = lows = len\n", "conftest.py": LYING, "sitecustomize.py": LYING,
      "tide_table_test.py": "", "pytest.ini": "[pytest]\n"}, Kind.FAIL),
]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "kind"), [row[1:] for row in EXERCISES], ids=[row[0] for row in EXERCISES]
)
def test_exercise_keeps_its_verdict(change, kind):
    suite = open_exercises(PythonEngine(ENGINE))
    result = suite.grade(TIDE, suite.change(TIDE, change))
    assert (result.kind, result.score) == (kind, 0.0), result


@pytest.mark.parametrize(
    ("patch", "kind"),
    [
        ("", Kind.EMPTY),
        ("garbage", Kind.REFUSED),
        ("--- a/tide_table.py\n+++ b/tide_table.py\n@@ -1 +1 @@\n-x\n+y\n", Kind.REFUSED),
        ("--- /dev/null\n+++ b/../out\n@@ -0,0 +1 @@\n+x\n", Kind.REFUSED),
        (GONE, Kind.FAIL),
    ],
    ids=["empty", "no diff", "another file", "leaves the workspace", "no solution"],
)
def test_exercise_turns_a_patch_down(patch, kind):
    assert open_exercises(PythonEngine(ENGINE)).grade(TIDE, patch.encode())[:2] == (kind, 0.0)


@pytest.mark.parametrize("task", [TIDE, "python-toll-road"])
def test_reference_of_an_exercise_passes(task):
    suite = open_exercises(PythonEngine(ENGINE))
    crlf = b"\xef\xbb\xbf" + suite.reference(task).strip().replace(b"\n", b"\r\n")
    assert suite.grade(task, crlf)[:2] == (Kind.PASS, 1.0)
