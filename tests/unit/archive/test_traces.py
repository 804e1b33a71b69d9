from pathlib import Path

import pytest

from dgm.archive.traces import Traces, shorten_data
from dgm.domain import Digest
from dgm.errors import ArchiveCorrupt


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    return Traces(tmp_path / "traces")


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_trace_comes_back_and_is_named_by_its_hash(traces: Traces) -> None:
    digest = traces.put(b"hello")
    assert digest == "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    assert traces.get(digest) == b"hello"


def test_equal_traces_are_stored_once(traces: Traces, tmp_path: Path) -> None:
    assert traces.put(b"log" * 1000) == traces.put(b"log" * 1000)
    assert len(files(tmp_path)) == 1


def test_long_trace_is_cut_in_the_middle_and_says_so(traces: Traces) -> None:
    data = traces.get(traces.put(b"a" * 900 + b"b" * 900, limit=400))
    assert data == b"a" * 300 + b"\n[1400 bytes cut]\n" + b"b" * 100


def test_trace_of_exactly_the_limit_is_whole() -> None:
    assert shorten_data(b"x" * 400, 400) == b"x" * 400


@pytest.mark.parametrize("at", [0, 5, -1])
def test_changed_byte_is_noticed_and_the_trace_named(traces: Traces, tmp_path: Path, at: int) -> None:
    digest = traces.put(b"what a model said" * 20)
    path = files(tmp_path)[0]
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArchiveCorrupt, match=digest):
        traces.get(digest)


def test_another_traces_content_under_its_name_is_noticed(traces: Traces, tmp_path: Path) -> None:
    digest = traces.put(b"one")
    one = files(tmp_path)[0]
    traces.put(b"two")
    two = next(path for path in files(tmp_path) if path != one)
    one.write_bytes(two.read_bytes())
    with pytest.raises(ArchiveCorrupt, match=f"{digest} is damaged"):
        traces.get(digest)


def test_missing_trace_is_named(traces: Traces) -> None:
    with pytest.raises(ArchiveCorrupt, match=f"trace {'ab' * 32} is missing"):
        traces.get(Digest("ab" * 32))
