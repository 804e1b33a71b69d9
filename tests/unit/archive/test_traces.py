import contextlib
import sqlite3
import zlib
from pathlib import Path

import pytest

from dgm.archive.events import Event, TaskGraded
from dgm.archive.log import Log, Traces, shorten_data
from dgm.domain import SEED, ActionId, Cost, Digest, Evaluation, TaskId, Verdict
from dgm.errors import ArchiveCorrupt, DgmError


def naming(*digests: Digest, attempt: int = 0) -> Event:
    cost = Cost(traces={str(n): digest for n, digest in enumerate(digests)})
    return TaskGraded(ActionId(1), Evaluation(SEED, TaskId("a"), attempt, Verdict.RESOLVED, "", 1.0, cost))


def count(path: Path) -> int:
    with Log.open(path, write=False) as log:
        return int(log.query("SELECT count(*) FROM blobs")[0][0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


def test_a_trace_is_written_with_the_event_that_names_it(path: Path) -> None:
    with Log.open(path, write=True) as log:
        traces = Traces(log)
        digest, other = traces.put(b"hello"), traces.put(b"never named")
        assert digest == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
        assert (traces.get(digest), traces.get(other), count(path)) == (b"hello", b"never named", 0)
        log.append(naming(digest))
        assert (traces.get(digest), traces.has(digest), count(path)) == (b"hello", True, 1)
        assert set(log.pending) == {other}
    with Log.open(path, write=False) as log:
        assert Traces(log).get(digest) == b"hello"
        with pytest.raises(ArchiveCorrupt, match=f"{other} is missing"):
            Traces(log).get(other)


def test_a_refused_event_writes_no_trace_and_the_next_one_does(path: Path) -> None:
    with Log.open(path, write=True) as log:
        traces = Traces(log)
        log.append(naming())
        digest = traces.put(b"text")
        with pytest.raises(DgmError, match="a second time"):
            log.append(naming(digest))
        assert count(path) == 0
        log.append(naming(digest, digest, attempt=1))
        assert (count(path), traces.get(digest)) == (1, b"text")


def test_equal_traces_are_stored_once(path: Path) -> None:
    with Log.open(path, write=True) as log:
        traces = Traces(log)
        log.append(naming(traces.put(b"log" * 1000), attempt=0))
        log.append(naming(traces.put(b"log" * 1000), attempt=1))
        assert (count(path), log.pending) == (1, {})


def test_a_long_trace_is_cut_in_the_middle_and_says_so(path: Path) -> None:
    with Log.open(path, write=True) as log:
        data = Traces(log).get(Traces(log).put(b"a" * 900 + b"b" * 900, limit=400))
    assert data == b"a" * 300 + b"\n[1400 bytes cut]\n" + b"b" * 100
    assert shorten_data(b"x" * 400, 400) == b"x" * 400


@pytest.mark.parametrize(
    "stored", [b"", b"no zlib", zlib.compress(b"another"), zlib.compress(b"text")[:-1], "text"]
)
def test_a_damaged_trace_is_named(path: Path, stored: object) -> None:
    with Log.open(path, write=True) as log:
        digest = Traces(log).put(b"text")
        log.append(naming(digest))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE blobs SET zlib = ?", (stored,))
        connection.commit()
    with Log.open(path, write=False) as log, pytest.raises(ArchiveCorrupt, match=f"{digest} is damaged"):
        Traces(log).get(digest)
