"""Which lines a failing test runs is found out by a script, read from its output, and believed in the ranking."""

import subprocess

import pytest

from dgm.offline import tracing
from dgm.offline.files import FileView
from dgm.offline.guidelines import Concept, recognise_concepts
from dgm.offline.statement import Example

LIBRARY = """def low(values):
    total = 0
    for value in values:
        total += value
    return total


def high(values):
    if not values:
        return 0
    return max(
        values,
    ) + 1


def never():
    return 1
"""
TESTS = """import unittest

from shop.prices import high, low


class Prices(unittest.TestCase):
    def test_low(self):
        self.assertEqual(low([1, 2]), 3)

    def test_none(self):
        self.assertEqual(high([]), 0)

    def test_high(self):
        print("noise")
        self.assertEqual(high([1, 2]), 2)
"""


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "tests").mkdir()
    for name, text in (
        ("shop/__init__.py", ""),
        ("tests/__init__.py", ""),
        ("shop/prices.py", LIBRARY),
        ("tests/test_prices.py", TESTS),
    ):
        (tmp_path / name).write_text(text)
    return tmp_path


def printed(repository, command):
    done = subprocess.run(
        ["bash", "-c", command.replace(tracing.PATH, str(repository / "tracing.py"))],
        cwd=repository, capture_output=True, text=True, timeout=20, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.starts_processes
def test_a_failing_tests_lines_are_suspected_most(repository):
    text = printed(repository, tracing.command(("tests.test_prices.Prices.test_high",), None, ()))
    trace = tracing.parse_trace(text)
    assert trace.complete
    assert "noise" not in text
    assert set(trace.suspicion["shop/prices.py"]) == {9, 11, 12, 13}
    assert trace.highest("shop/prices.py", 11, 13) == 1.0
    assert trace.highest("shop/prices.py", 9, 9) < 1.0
    assert trace.highest("shop/prices.py", 16, 17) == 0.0
    assert trace.suspects("shop/prices.py")[:3] == [11, 12, 13]


@pytest.mark.starts_processes
def test_an_example_is_traced_beside_passing_tests(repository):
    example = Example(("from shop.prices import low, high", "low([1])"), "2")
    trace = tracing.parse_trace(printed(repository, tracing.command((), example, ("tests.test_prices",))))
    assert set(trace.suspicion["shop/prices.py"]) == {2, 3, 4, 5}


def test_output_that_was_cut_is_not_taken_for_all():
    text = "TRACE 1 failing, 3 passing\ntrace a/b.py 1.00 3-5 9 .\ntrace a/c.py 0.50 1"
    trace = tracing.parse_trace(text)
    assert not trace.complete
    assert trace.suspicion == {"a/b.py": {3: 1.0, 4: 1.0, 5: 1.0, 9: 1.0}}
    assert tracing.parse_trace("nothing of it") is None


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Trace which lines the failing test runs.", True),
        ("Find out which lines are executed by the failing test.", True),
        ("Use tracing of the failing tests to find the fault.", True),
        ("Measure the coverage of the failing test first.", True),
        ("Do not trace the tests.", False),
        ("Never measure coverage.", False),
        ("Leave no trace.", False),
        ("Keep lines short.", False),
    ],
)
def test_the_wish_for_a_trace_is_recognised(text, asked):
    assert (Concept.TRACE in recognise_concepts(text)) is asked


def test_a_deleted_line_leaves_no_empty_one_behind():
    view = FileView("a.py")
    view.see({1: "one", 2: "two", 3: "three"}, 3)
    view.replace("two\n", "")
    assert (view.text, view.total) == ("one\nthree\n", 2)
    view.replace("three\n", "three\ntwo\n")
    assert view.lines == {1: "one", 2: "three", 3: "two"}
