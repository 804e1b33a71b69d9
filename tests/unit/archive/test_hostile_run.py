"""Run folders that nobody should trust: ``run.json`` and traces are refused in one line."""

import json
import os
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from dgm.archive.config_shape import FrozenTable
from dgm.archive.events import ModelCalled
from dgm.archive.journal import CallReader
from dgm.archive.overview import read_overview
from dgm.archive.run import Run, read_config
from dgm.archive.traces import Traces, inflate, name_of
from dgm.domain import ActionId, Digest, Usage
from dgm.errors import ArchiveCorrupt

DEEP = "[" * 200_000 + "]" * 200_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    Run.create(tmp_path / "run", {"id": "abc", "settings": {"benchmark": "starter"}}).close()
    return tmp_path / "run"


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        "[]",
        '{"format": "x", "config": {}}',
        '{"format": null, "config": {}}',
        '{"format": 1e999, "config": {}}',
        '{"format": 1, "config": []}',
        '{"format": 1, "config": {"settings": {"workers": ' + "9" * 5000 + "}}}",
        *(
            json.dumps({"format": 1, "config": config})
            for config in (
                {"id": "../../x"},
                {"id": "*"},
                {"id": 5},
                {"created": 1e300},
                {"sandbox": ["docker"]},
                {"versions": ["x"]},
                {"settings": []},
                {"settings": {"workers": "many"}},
                {"settings": {"seed": 10**400}},
                {"settings": {"benchmark": None}},
                {"settings": {"policy": "hgm"}},
                {"settings": {"policy": {"name": ["x"]}}},
                {"settings": {"limits": 5}},
                {"settings": {"gates": "x"}},
                {"settings": {"models": {"solve": [5]}}},
            )
        ),
    ],
)
def test_a_configuration_of_another_shape_is_refused(folder: Path, text: str) -> None:
    (folder / "run.json").write_text(text)
    with pytest.raises(ArchiveCorrupt, match=r"run\.json: [^\n]*$"):
        Run.open(folder)
    with pytest.raises(ArchiveCorrupt, match=r"run\.json: [^\n]*$"):
        read_overview(folder)


def test_a_configuration_behind_a_link_or_in_a_pipe_is_not_read(folder: Path) -> None:
    path = folder / "run.json"
    path.rename(folder / "moved")
    path.symlink_to(folder / "moved")
    with pytest.raises(ArchiveCorrupt, match="a link"):
        read_config(path)
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ArchiveCorrupt, match="not a regular file"):
        read_config(path)


def test_a_key_that_a_configuration_lacks_is_named(folder: Path) -> None:
    config = read_config(folder / "run.json")
    assert isinstance(config, FrozenTable)
    with pytest.raises(ArchiveCorrupt, match=r"run\.json\.settings has no 'workers'"):
        config["settings"]["workers"]
    with Run.open(folder) as run, pytest.raises(ArchiveCorrupt, match="settings has no 'seed'"):
        run.settings()["seed"]


def _packed(**record: object) -> bytes:
    return zlib.compress(json.dumps({"wire": "chat", "body": {}, "kept": 0, "same": [], **record}).encode())


@pytest.mark.parametrize(
    "request_",
    [
        "text",
        7,
        b"",
        b"no zlib",
        zlib.compress(b"[]"),
        zlib.compress(DEEP.encode()),
        _packed(base=1),
        _packed(base="../../../etc/passwd"),
        _packed(base=2),
        _packed(base=[]),
        _packed(base=10**30),
        _packed(base=float("inf")),
        _packed(wire="telnet"),
    ],
)
def test_a_row_that_holds_no_request_is_named(folder: Path, request_: object) -> None:
    with Run.open(folder, write=True) as run:
        call = ModelCalled(ActionId(0), 1, "m", "solve")
        run.commit([call], lambda log: log.execute("INSERT INTO calls VALUES (0, 1, ?, NULL)", (request_,)))
        with pytest.raises(ArchiveCorrupt, match=r"^action 0, call 1: its request cannot be read"):
            CallReader(run.store).request(call)


def test_an_exchange_that_is_none_of_its_protocol_is_named(folder: Path) -> None:
    body = {"messages": [{"role": "assistant", "content": [{"type": []}]}]}
    reply = zlib.compress(b'{"usage":[1,1,1,0],"stop":"end","wire":"messages","content":"{}","stream":false}')
    with Run.open(folder, write=True) as run:
        call = ModelCalled(ActionId(0), 1, "m", "solve")
        row = (_packed(wire="messages", body=body), reply)
        run.commit([call], lambda log: log.execute("INSERT INTO calls VALUES (0, 1, ?, ?)", row))
        with pytest.raises(ArchiveCorrupt, match=r"^action 0, call 1: its exchange cannot be read"):
            CallReader(run.store).exchange(call)


@pytest.mark.parametrize("digest", ["../../../etc/passwd", "", "ab", "A" * 64, "a" * 63 + "\n"])
def test_what_is_no_digest_names_no_trace(folder: Path, digest: str) -> None:
    with pytest.raises(ArchiveCorrupt, match="is not the name of a trace"):
        Traces(folder / "traces").get(Digest(digest))


def test_a_request_that_builds_on_a_path_is_refused(folder: Path) -> None:
    with Run.open(folder, write=True) as run:
        asked = run.traces.put(b'{"base": "../../../etc/passwd", "messages": []}')
        call = ModelCalled(ActionId(0), 1, "m", "solve", asked, asked, Usage())
        run.append(call)
        reader = CallReader(run.store)
        with pytest.raises(ArchiveCorrupt, match="is not the name of a trace"):
            reader.request(call)
        with pytest.raises(ArchiveCorrupt, match="nested deeper"):
            reader.request(replace(call, request=run.traces.put(DEEP.encode())))
        with pytest.raises(ArchiveCorrupt, match="not what dgm wrote"), run.traces.reading(asked) as record:
            record["stages"]


def test_traces_behind_links_are_not_read(folder: Path, tmp_path: Path) -> None:
    traces = Traces(folder / "traces")
    digest = traces.put(b"text")
    place = folder / "traces" / digest[:2]
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")
    with pytest.raises(ArchiveCorrupt, match="a link"):
        traces.get(digest)


def test_reading_a_trace_stops_at_a_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dgm.archive.traces.MAX_BYTES", 5_000_000)
    traces = Traces(folder / "traces")
    digest = traces.put(bytes(6_000_000), limit=None)
    for read in (traces.get, traces.check):
        with pytest.raises(ArchiveCorrupt, match="more than 5000000 bytes"):
            read(digest)
    assert len(traces.get(traces.put(bytes(5_000_000), limit=None))) == 5_000_000


@pytest.mark.parametrize(
    "packed", [b"", zlib.compress(b"x" * 99)[:-1], zlib.compress(b"x") + b"more", b"x" * 99]
)
def test_what_is_not_one_whole_stream_is_refused(packed: bytes) -> None:
    with pytest.raises(zlib.error):
        list(inflate(iter([packed[:5], packed[5:]]), 1_000))
    assert name_of(b"".join(inflate(iter([zlib.compress(b"x" * 99)]), 99))) == name_of(b"x" * 99)
