"""Python exercises graded by the real runner and pytest: the sandbox here is a folder, the graded code our own."""

import asyncio
import base64
import json

import pytest

from dgm.archive.repository import patch
from dgm.benchmarks.polyglot import PolyglotBenchmark
from dgm.config import PolyglotSettings
from dgm.domain import Entry, TaskId, Verdict
from dgm.errors import Infrastructure
from dgm.paths import asset
from dgm.protocols import Completed
from tests.support.polyglot_folder import PolyglotFolder

pytestmark = pytest.mark.starts_processes

TASK = TaskId("python-tide-table")
GOOD = asset("benchmarks", "polyglot", "python", "exercises", "practice", "tide-table", ".meta", "example.py")


class Says(PolyglotFolder):
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
    opened = benchmark(engine or PolyglotFolder(root))
    start = opened.workspace(TASK)
    files = {"tide_table.py": Entry(text.encode())} | {path: Entry(data) for path, data in more.items()}
    return asyncio.run(opened.grade(TASK, patch(start, {**start, **files}), {}))


def test_reference_passes_and_stub_fails(tmp_path):
    assert asyncio.run(benchmark(PolyglotFolder(tmp_path / "a")).verify(TaskId("python-toll-road"), {})) == []
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


def test_a_solution_that_cannot_be_loaded_is_told(tmp_path):
    assert "SyntaxError" in graded(tmp_path / "a", "def highs(:\n").reason
    assert graded(tmp_path / "b", "highs = len\n").reason == "the tests could not be loaded: ImportError"


def test_tests_that_do_not_end_are_told(tmp_path):
    grade = graded(tmp_path / "sleep", "import time\ntime.sleep(60)\n")
    assert grade.verdict is Verdict.UNRESOLVED
    assert grade.reason == "the tests did not end within 120 s"


def test_a_solution_file_that_is_a_link_is_not_followed(tmp_path):
    opened = benchmark(PolyglotFolder(tmp_path))
    start = opened.workspace(TASK)
    link = patch(start, {**start, "tide_table.py": Entry(b"/etc/hostname", 0o120000)})
    assert asyncio.run(opened.grade(TASK, link, {})).reason == "the solution file tide_table.py is a link"


def test_an_empty_patch_opens_no_sandbox(tmp_path):
    engine = PolyglotFolder(tmp_path)
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


def test_half_a_line_of_a_killed_runner_is_no_result(tmp_path):
    class Cut(Says):
        async def exec(self, argv, *, stdin, **more):
            whole = await super().exec(argv, stdin=stdin, **more)
            return Completed(137, whole.output[:-4])

    step = {"stage": "tests", "exit_code": 0, "output": "", "marked": ""}
    grade = graded(tmp_path, "x = 1\n", Cut(tmp_path, {"stage": "prepared"}, step))
    assert grade.reason == "the graded code ended the test runner (exit status 137)"
