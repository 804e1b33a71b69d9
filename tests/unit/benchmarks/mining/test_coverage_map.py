"""Data files as coverage.py 7 writes them, made here by its documented schema."""

import sqlite3
from pathlib import Path

import pytest

from dgm.benchmarks.mining.bugs import read_contexts

X, Y = "tests/test_a.py::test_x[0|1]", "tests/test_a.py::test_y"
DATA = f"""
    CREATE TABLE file (id integer primary key, path text, unique (path));
    CREATE TABLE context (id integer primary key, context text, unique (context));
    CREATE TABLE line_bits (file_id integer, context_id integer, numbits blob, unique (file_id, context_id));
    INSERT INTO file VALUES (1, '/work/repo/pkg/a.py'), (2, '/usr/lib/b.py');
    INSERT INTO context VALUES (1, ''), (2, '{X}'), (3, '{Y}');
    INSERT INTO line_bits VALUES (1, 1, x'02'), (1, 2, x'0c'), (1, 3, x'0801'), (2, 2, x'02');
"""


def test_lines_name_the_tests_that_ran_them(tmp_path):
    with sqlite3.connect(tmp_path / "data") as data:
        data.executescript(DATA)
    data.close()
    coverage = read_contexts(tmp_path / "data", Path("/work/repo"))
    tests = {line: coverage.tests_of("pkg/a.py", line) for line in (1, 2, 3, 8, 9, 999)}
    assert tests == {1: set(), 2: {X}, 3: {X, Y}, 8: {Y}, 9: set(), 999: set()}
    assert coverage.files.keys() == {"pkg/a.py", "/usr/lib/b.py"}


def test_a_missing_or_foreign_file_is_refused(tmp_path):
    (tmp_path / "text").write_text("no database, but long enough to be read as one" * 9)
    for name in ("none", "text"):
        with pytest.raises(ValueError, match="no data file of coverage"):
            read_contexts(tmp_path / name, Path("/work/repo"))
