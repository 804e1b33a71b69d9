"""Python exercises graded by the real runner and pytest: the sandbox here is a folder, the graded code our own."""

import asyncio
import base64
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dgm.archive.repository import patch
from dgm.benchmarks.polyglot import PolyglotBenchmark
from dgm.config import PolyglotSettings
from dgm.domain import Entry, TaskId, Verdict
from dgm.errors import Infrastructure
from dgm.paths import asset
from dgm.protocols import Completed

pytestmark = pytest.mark.starts_processes

TASK = TaskId("python-tide-table")
GOOD = asset("benchmarks", "polyglot", "python", "exercises", "practice", "tide-table", ".meta", "example.py")


class Folder:
    """A sandbox that is a folder: paths of the sandbox lie below it."""

    name = "folder"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.opened = 0

    @asynccontextmanager
    async def open(self, spec):
        self.opened += 1
        yield self

    def below(self, text):
        for top in ("/work", "/job"):
            text = text.replace(f'"{top}', f'"{self.root}{top}').replace(f'\\"{top}', f'\\"{self.root}{top}')
        return text

    async def put(self, files, target):
        for name, entry in files.items():
            path = self.root / target.lstrip("/") / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(entry.data)

    async def exec(self, argv, *, timeout_s, cwd="/work", env=None, stdin=b"", output_limit=0):
        task = json.loads(self.below(stdin.decode()))
        for step in task["steps"]:
            step["timeout_s"] = min(step["timeout_s"], 2.0 if "sleep" in str(self.root) else 60.0)
        done = await asyncio.to_thread(
            subprocess.run,
            [str(self.root) + word if word.startswith("/") else word for word in argv],
            cwd=self.root,
            env={"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **env},
            input=json.dumps(task).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=timeout_s,
        )
        return Completed(done.returncode, done.stdout)


class Says(Folder):
    """A sandbox whose runner says what it is told to, under the right nonce."""

    def __init__(self, root, *said, completed=None):
        super().__init__(root)
        self.said = said
        self.completed = completed

    async def exec(self, argv, *, stdin, **_):
        nonce = json.loads(stdin)["nonce"]
        lines = "".join(f"\n{nonce} {json.dumps(said)}\n" for said in self.said)
        return self.completed or Completed(0, lines.encode())


def benchmark(engine):
    return PolyglotBenchmark(asset("benchmarks", "polyglot"), engine, PolyglotSettings(languages=("python",)))


def graded(root, text, engine=None, **more):
    opened = benchmark(engine or Folder(root))
    start = opened.workspace(TASK)
    files = {"tide_table.py": Entry(text.encode())} | {path: Entry(data) for path, data in more.items()}
    return asyncio.run(opened.grade(TASK, patch(start, {**start, **files}), {}))


def test_a_prediction_of_crlf_with_a_bom_is_resolved_with_a_note(tmp_path):
    opened = benchmark(Folder(tmp_path))
    patch = b"\xef\xbb\xbf" + opened.reference(TASK).strip().replace(b"\n", b"\r\n")
    grade = asyncio.run(opened.grade(TASK, patch, {}))
    assert grade.verdict is Verdict.RESOLVED
    assert grade.reason.endswith("tests pass; the lines of the patch ended in CR LF and were read without CR")


def test_reference_passes_and_stub_fails(tmp_path):
    assert asyncio.run(benchmark(Folder(tmp_path / "a")).verify(TaskId("python-toll-road"), {})) == []
    grade = graded(tmp_path / "b", GOOD.read_text())
    assert grade.verdict is Verdict.RESOLVED
    assert grade.reason == "all 7 tests pass"
    assert "TideTableTest.test_two_tides" in grade.passed
    assert not any("control" in name.lower() for name in grade.passed)


def test_failed_tests_are_counted_named_and_explained(tmp_path):
    grade = graded(tmp_path, GOOD.read_text().replace("yield position, height", "yield position + 1, height"))
    assert grade.verdict is Verdict.UNRESOLVED
    assert grade.reason.startswith("5 of 7 tests fail: TideTableTest.test_")
    assert grade.score == pytest.approx(2 / 7)
    assert b"Lists differ: [2] != [1]" in grade.log
    assert b"FAILED TideTableTest.test_one_high_water  AssertionError\n" in grade.shown
    assert b"differ" not in grade.shown


def test_what_is_shown_holds_no_line_of_a_hidden_test(tmp_path):
    grade = graded(tmp_path, "def highs(h):\n    pass\n\n\ndef lows(h):\n    pass\n")
    secret = benchmark(None).exercise(TASK).tests["tide_table_test.py"].data
    lines = [line.strip() for line in secret.splitlines() if len(line.strip()) > 12]
    assert not [line for line in lines if line in grade.shown and b"def test" not in line]


def test_neither_messages_nor_kinds_of_its_own_are_shown(tmp_path):
    stolen = "type('Stolen' + open(__file__).read(3) + 'Error', (Exception,), {})('secret')"
    grade = graded(tmp_path, f"def highs(h):\n    raise {stolen}\n\n\ndef lows(h):\n    raise {stolen}\n")
    assert b"TideTableTest.test_one_high_water  an exception of its own kind\n" in grade.shown
    assert b"secret" not in grade.shown + grade.reason.encode()
    assert b"Stolen" not in grade.shown + grade.reason.encode()


def test_the_mark_is_in_nothing_that_anybody_reads(tmp_path):
    grade = graded(
        tmp_path, "import glob\n\nprint(sorted(glob.glob('*')))\n\n\ndef highs(h):\n    print('here')\n"
    )
    assert b"control" not in grade.log + grade.shown


@pytest.mark.parametrize(
    "text",
    [
        "import os\nos._exit(0)\n",
        "import sys\nsys.exit(0)\n",
        "import pytest\npytest.exit('done', 0)\n",
        "def highs(h):\n    import os\n    os._exit(0)\n\n\nlows = highs\n",
        "import unittest\n\n\ndef highs(h):\n    raise unittest.SkipTest\n\n\nlows = highs\n",
        "import unittest\nunittest.TestCase.assertEqual = lambda *_: None\nhighs = lows = len\n",
    ],
)
def test_ordinary_tricks_pass_nothing(tmp_path, text):
    grade = graded(tmp_path, text)
    assert grade.verdict is Verdict.UNRESOLVED
    assert grade.reason


def test_only_solution_files_are_taken(tmp_path):
    lying = b"import unittest\nunittest.TestCase.assertEqual = lambda *_: None\n"
    grade = graded(
        tmp_path,
        "highs = lows = len\n",
        **{
            "conftest.py": lying,
            "sitecustomize.py": lying,
            "tide_table_test.py": b"",
            "pytest.ini": b"[pytest]\n",
        },
    )
    assert grade.verdict is Verdict.UNRESOLVED
    assert grade.reason.startswith("7 of 7 tests fail")


def test_a_solution_that_cannot_be_loaded_is_told(tmp_path):
    assert "SyntaxError" in graded(tmp_path / "a", "def highs(:\n").reason
    assert graded(tmp_path / "b", "highs = len\n").reason == "the tests could not be loaded: ImportError"


def test_tests_that_do_not_end_are_told(tmp_path):
    grade = graded(tmp_path / "sleep", "import time\ntime.sleep(60)\n")
    assert grade.verdict is Verdict.UNRESOLVED
    assert grade.reason == "the tests did not end within 120 s"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (b"garbage", None),
        (
            (
                b"diff --git a/tide_table.py b/tide_table.py\n--- a/tide_table.py\n+++ b/tide_table.py\n"
                b"@@ -1 +1 @@\n-x\n+y\n"
            ),
            "the patch does not apply: ",
        ),
        (
            b"diff --git a/../out b/../out\nnew file mode 100644\n--- /dev/null\n+++ b/../out\n@@ -0,0 +1 @@\n+x\n",
            "the patch does not apply: ",
        ),
        (
            (
                b"diff --git a/tide_table.py b/tide_table.py\ndeleted file mode 100644\n--- a/tide_table.py\n"
                b"+++ /dev/null\n@@ -1,6 +0,0 @@\n-def highs(heights):\n-    pass\n-\n-\n"
                b"-def lows(heights):\n-    pass\n"
            ),
            "the solution file tide_table.py is gone",
        ),
    ],
)
def test_a_patch_that_cannot_be_graded_is_unresolved(tmp_path, made, said):
    grade = asyncio.run(benchmark(Folder(tmp_path)).grade(TASK, made, {}))
    assert grade.verdict is Verdict.UNRESOLVED
    assert grade.reason.startswith(said or "the patch does not apply: ")


def test_a_solution_file_that_is_a_link_is_not_followed(tmp_path):
    opened = benchmark(Folder(tmp_path))
    start = opened.workspace(TASK)
    link = patch(start, {**start, "tide_table.py": Entry(b"/etc/hostname", 0o120000)})
    assert asyncio.run(opened.grade(TASK, link, {})).reason == "the solution file tide_table.py is a link"


def test_an_empty_patch_opens_no_sandbox(tmp_path):
    engine = Folder(tmp_path)
    assert asyncio.run(benchmark(engine).grade(TASK, b"", {})).reason == "empty patch"
    assert engine.opened == 0


def test_a_sandbox_that_fails_is_nobodys_fault(tmp_path):
    with pytest.raises(Infrastructure, match="ended with 127 before it ran a test"):
        graded(tmp_path, "x = 1\n", Says(tmp_path, completed=Completed(127, b"python3: not found")))


def test_a_missing_tool_chain_is_nobodys_fault(tmp_path):
    output = base64.b64encode(b"sh: 1: cargo: not found\n").decode()
    build = {"stage": "build", "exit_code": 127, "output": output, "marked": ""}
    engine = Says(tmp_path, {"stage": "prepared"}, build, {"stage": "done", "results": ""})
    with pytest.raises(Infrastructure, match="lacks its tool chain: sh: 1: cargo: not found"):
        graded(tmp_path, "x = 1\n", engine)


def test_a_runner_that_graded_code_ended_is_the_agents_end(tmp_path):
    grade = graded(
        tmp_path,
        "x = 1\n",
        Says(tmp_path, {"stage": "prepared"}, {"stage": "tests", "exit_code": 0, "output": "", "marked": ""}),
    )
    assert grade.verdict is Verdict.UNRESOLVED
    assert grade.reason == "the graded code ended the test runner (exit status 0)"


def test_a_runner_that_is_killed_before_it_reports_a_step_is_the_agents_end(tmp_path):
    grade = graded(tmp_path, "import os\nos.kill(os.getppid(), 9)\n")
    assert grade.verdict is Verdict.UNRESOLVED
    assert grade.reason == "the graded code ended the test runner (exit status -9)"


def test_half_a_line_of_a_killed_runner_is_no_result(tmp_path):
    class Cut(Says):
        async def exec(self, argv, *, stdin, **more):
            whole = await super().exec(argv, stdin=stdin, **more)
            return Completed(137, whole.output[:-4])

    step = {"stage": "tests", "exit_code": 0, "output": "", "marked": ""}
    grade = graded(tmp_path, "x = 1\n", Cut(tmp_path, {"stage": "prepared"}, step))
    assert grade.reason == "the graded code ended the test runner (exit status 137)"
