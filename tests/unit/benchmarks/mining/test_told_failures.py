"""Statements from whole test files: each failing test is told from its beginning."""

from dataclasses import replace

from dgm.benchmarks.mining.leaks import find_leaks
from dgm.benchmarks.mining.statements import template_statement
from dgm.benchmarks.mining.symptoms import find_symptom
from tests.unit.benchmarks.mining.test_leaks import EVIDENCE

FILE = '''
LIMITS = [
    1,
    2,
]


def test_all():
    text = """\\
one
    two"""
    with raises(KeyError):
        at(0)
    with raises(KeyError):
        at(LIMITS, text)
    after()
'''
SHOWN = '''LIMITS = [
    1,
    2,
]

text = """\\
one
    two"""
with raises(KeyError):
    at(0)
with raises(KeyError):
    at(LIMITS, text)'''
SECOND = "t.py:14: in test_all\n    with raises(KeyError):\nE   Failed: DID NOT RAISE KeyError\n"


def test_of_equal_lines_the_one_that_failed_is_told_with_texts_and_constants_as_they_are():
    found = find_symptom(SECOND, "", "t.py::test_all", [FILE])
    assert found.code == SHOWN


def test_each_failing_test_is_told_and_what_is_wanted_of_it():
    evidence = replace(
        EVIDENCE,
        failures=(
            ("t.py::test_all", SECOND),
            ("t.py::test_b", "t.py:3: in test_b\n    assert b() == 1\nE   assert 2 == 1\n"),
            ("t.py::test_c", "t.py:5: in test_c\n    c()\nE   KeyError: 1\n"),
        ),
        fail_to_pass=("t.py::test_all", "t.py::test_b", "t.py::test_c"),
        test_files=(FILE,),
    )
    told = template_statement(evidence)
    assert [
        told.count(text) for text in ("at(LIMITS, text)", "assert b() == 1", "c()\n", "Nor does this:")
    ] == [
        1,
        1,
        1,
        2,
    ]
    assert [
        told.count(text) for text in ("error should be raised", "assertion should hold", "without an error")
    ] == [1, 1, 1]


def test_a_file_that_a_test_writes_is_no_name_of_a_test():
    added = '+++ b/tests/test_more.py\n@@ -0,0 +1,2 @@\n+def test_rotates():\n+    rotate("test_file.txt")\n'
    evidence = replace(EVIDENCE, test_diff=added, fail_to_pass=("tests/test_more.py::test_rotates",))
    assert find_leaks("`rotate('test_file.txt')` leaves it where it is.", evidence) == ()
    assert find_leaks("See test_more.py for it.", evidence) == ("names a test: 'test_more.py'",)


def test_the_values_of_a_parametrised_test_are_told():
    cases = '@mark.parametrize(\n    ("a", "b"), [\n    (1, 2),\n])'
    file = f"{cases}\ndef test_sum(a, b):\n    assert total(a) == b\n"
    printed = "t.py:6: in test_sum\n    assert total(a) == b\nE   assert 1 == 2\n"
    found = find_symptom(printed, "", "t.py::test_sum[1-2]", [file])
    assert found.code == f"{cases}\nassert total(a) == b"
