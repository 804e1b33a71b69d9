"""Whose fault an error of the database is: the machine's, the user's, or the file's."""

import sqlite3
from pathlib import Path

import pytest

from dgm.archive.log import translate_error
from dgm.errors import ArchiveCorrupt, ArchiveHeld, Infrastructure, UserError


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (sqlite3.SQLITE_FULL, Infrastructure),
        (sqlite3.SQLITE_IOERR_WRITE, Infrastructure),
        (sqlite3.SQLITE_BUSY_SNAPSHOT, ArchiveHeld),
        (sqlite3.SQLITE_LOCKED, ArchiveHeld),
        (sqlite3.SQLITE_READONLY_DIRECTORY, UserError),
        (sqlite3.SQLITE_CANTOPEN_ISDIR, UserError),
        (sqlite3.SQLITE_IOERR_SHORT_READ, ArchiveCorrupt),
        (sqlite3.SQLITE_CORRUPT_INDEX, ArchiveCorrupt),
        (sqlite3.SQLITE_NOTADB, ArchiveCorrupt),
    ],
)
def test_a_code_says_whose_fault_an_error_is(code, kind):
    error = sqlite3.OperationalError("why")
    error.sqlite_errorcode = code
    told = translate_error(Path("run.db"), error)
    assert type(told) is kind
    assert str(told).startswith("run.db: ")
    assert "why" in str(told)


def test_an_error_without_a_code_means_damage():
    assert type(translate_error(Path("run.db"), sqlite3.OperationalError("why"))) is ArchiveCorrupt
