"""Data files as coverage.py 7 writes them, made here by its documented schema."""

import sqlite3
from pathlib import Path

import pytest

from dgm.benchmarks.mining.bugs import read_contexts

SCHEMA = """
    CREATE TABLE file (id integer primary key, path text, unique (path));
    CREATE TABLE context (id integer primary key, context text, unique (context));
    CREATE TABLE line_bits (file_id integer, context_id integer, numbits blob, unique (file_id, context_id));
    CREATE TABLE arc (file_id integer, context_id integer, fromno integer, tono integer);
    INSERT INTO file VALUES (1, '/work/repo/pkg/a.py'), (2, '/usr/lib/b.py'), (3, 'pkg/c.py');
    INSERT INTO context VALUES (1, ''), (2, 'tests/test_a.py::test_x[0|1]|run'), (3, 'tests/test_a.py::test_y|setup'),
        (4, 'tests/test_a.py::test_y|run');
"""
LINES = (
    "INSERT INTO line_bits VALUES (1, 1, x'02'), (1, 2, x'0c'), (1, 3, x'0001'), (1, 4, x'08'), (2, 2, x'02')"
)
ROOT = Path("/work/repo")
X, Y = "tests/test_a.py::test_x[0|1]", "tests/test_a.py::test_y"


@pytest.fixture
def write(tmp_path):
    def write(*statements):
        file = tmp_path / ".coverage"
        with sqlite3.connect(file) as data:
            data.executescript(";".join(statements))
        data.close()
        return file

    return write


def test_lines_name_the_tests_that_ran_them(write):
    found = read_contexts(write(SCHEMA, LINES), ROOT)
    tests = {line: found.tests_of("pkg/a.py", line) for line in (1, 2, 3, 8, 9, 999)}
    assert tests == {1: set(), 2: {X}, 3: {X, Y}, 8: {Y}, 9: set(), 999: set()}


def test_files_outside_of_the_repository_are_left_out(write):
    found = read_contexts(write(SCHEMA, LINES), ROOT)
    assert found.paths == {"pkg/a.py"}
    assert found.tests_of("/usr/lib/b.py", 1) == set()


def test_a_file_without_contexts_says_how_to_make_them(write):
    with pytest.raises(ValueError, match="--cov-context=test"):
        read_contexts(write(SCHEMA, "INSERT INTO line_bits VALUES (1, 1, x'02')"), ROOT)


def test_a_missing_foreign_or_deceiving_file_is_refused(write, tmp_path):
    with pytest.raises(ValueError, match="missing"):
        read_contexts(tmp_path / "none", ROOT)
    (tmp_path / "text").write_text("no database, but long enough to be read as one" * 9)
    with pytest.raises(ValueError, match="no data file of coverage"):
        read_contexts(tmp_path / "text", ROOT)
    view = "DROP TABLE line_bits; CREATE VIEW line_bits AS SELECT 1 AS file_id, 2 AS context_id, x'0c' AS numbits"
    with pytest.raises(ValueError, match="no table 'line_bits'"):
        read_contexts(write(SCHEMA, view), ROOT)
