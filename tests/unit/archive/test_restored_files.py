"""Which files of a workspace are put back before its tests grade a patch."""

import pytest

from dgm.benchmarks.sandbox_runner import matches


@pytest.mark.parametrize(
    ("name", "pattern", "restored"),
    [
        ("conftest.py", "conftest.py", True),
        ("tests/unit/conftest.py", "conftest.py", True),
        ("tests/unit/test_a.py", "tests", True),
        ("src/tests.py", "tests", False),
        ("tests/unit/test_a.py", "tests/unit", True),
        ("tests/data/cases.json", "tests/data/cases.json", True),
        ("tests/unit.py", "tests/unit", False),
        ("src/tests/unit/test_a.py", "tests/unit", False),
        ("tests/unit/test_a.py", "tests/*_a.py", True),
    ],
)
def test_a_pattern_with_a_slash_is_a_path_and_any_other_a_name(name, pattern, restored):
    assert matches(name, [pattern]) is restored
