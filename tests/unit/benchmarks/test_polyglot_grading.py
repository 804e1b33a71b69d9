"""Python exercises graded in real sandboxes: verdicts, reasons, and what is shown of hidden tests."""

import asyncio

import pytest

from dgm.archive.repository import patch
from dgm.benchmarks.polyglot import PolyglotBenchmark
from dgm.benchmarks.verification import verify
from dgm.config import PolyglotSettings
from dgm.domain import Entry, TaskId, Verdict
from dgm.paths import asset
from tests.support.python_exercises import PythonEngine
from tests.support.suite_on_disk import NoEngine

pytestmark = [pytest.mark.sandbox, pytest.mark.starts_processes]

TASK = TaskId("python-tide-table")
SHIPPED = asset("benchmarks", "polyglot")
GOOD = (SHIPPED / "python/exercises/practice/tide-table/.meta/example.py").read_text()
STUB = "def highs(h):\n    pass\n\n\ndef lows(h):\n    pass\n"


def benchmark(engine=None, folder=SHIPPED):
    return PolyglotBenchmark(
        folder, engine or PythonEngine("bubblewrap"), PolyglotSettings(languages=("python",))
    )


def grade(text, **files):
    opened = benchmark()
    start = opened.workspace(TASK)
    changed = {"tide_table.py": text.encode(), **files}
    after = {**start, **{path: Entry(data) for path, data in changed.items()}}
    return asyncio.run(opened.grade(TASK, patch(start, after), {}))


def test_reference_passes_and_stub_fails():
    assert asyncio.run(verify(benchmark(), TaskId("python-toll-road"), {})) == []


def test_failed_tests_are_counted_named_and_explained():
    graded = grade(GOOD.replace("yield position, height", "yield position + 1, height"))
    assert (graded.verdict, graded.score) == (Verdict.UNRESOLVED, pytest.approx(2 / 7))
    assert graded.reason == "5 of 7 tests still fail"
    assert b"Lists differ: [2] != [1]" in graded.log
    assert b"FAILED test_one_high_water  AssertionError\n" in graded.shown
    assert b"differ" not in graded.shown


def test_what_is_shown_holds_no_line_of_a_hidden_test():
    graded = grade(STUB)
    secret = benchmark(NoEngine()).exercise(TASK).hidden["tide_table_test.py"].data
    lines = [line.strip() for line in secret.splitlines() if len(line.strip()) > 12]
    assert not [line for line in lines if line in graded.shown and b"def test" not in line]


def test_neither_messages_nor_kinds_of_its_own_are_shown():
    stolen = "type('Stolen' + open(__file__).read(3) + 'Error', (Exception,), {})('secret')"
    graded = grade(f"def highs(h):\n    raise {stolen}\n\n\ndef lows(h):\n    raise {stolen}\n")
    assert b"test_one_high_water  an exception of its own kind\n" in graded.shown
    assert b"Stolendef" not in graded.shown + graded.reason.encode()


FORGED = """import json, os, sys
frame = sys._getframe()
while not isinstance(frame.f_locals.get("task"), dict):
    frame = frame.f_back
name = open("tide_table_test.py").read() + chr(0xD800)
said = json.dumps({"test": name, "outcome": "failed", "error": None})
os.write(frame.f_locals["results_fd"], f"\\n{frame.f_locals['nonce']} {said}\\n".encode())
"""


def test_no_name_that_code_makes_up_is_shown():
    graded = grade(FORGED + STUB)
    assert b"FAILED test_one_high_water  AssertionError\n" in graded.shown
    assert b"import" not in graded.shown


def test_a_solution_that_cannot_be_loaded_is_explained_to_a_second_try():
    graded = grade("def highs(:\n")
    assert "7 of 7 tests still fail" in graded.reason
    assert b"SyntaxError" in graded.log


def test_tests_that_are_skipped_or_missing_are_not_passed():
    skipping = "import unittest\n\n\ndef highs(h):\n    raise unittest.SkipTest\n\n\n"
    assert grade(f"{skipping}lows = highs\n").score == 0.0
    hiding = "import sys\n\n\ndef highs(h):\n    return [1] if h == [1, 2, 1] else []\n\n\nlows = highs\n"
    assert grade(hiding).verdict is Verdict.UNRESOLVED


def test_an_empty_patch_opens_no_sandbox():
    assert asyncio.run(benchmark(NoEngine()).grade(TASK, b"", {})).reason == "empty patch"
