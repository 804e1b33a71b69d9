"""Packed runs that nobody should trust."""

import hashlib
import io
import json
import lzma
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from dgm.archive.packed import MANIFEST, MAX_RATIO, PackReader, unpack
from dgm.errors import DgmError, UserError
from dgm.exports.pack import pack
from tests.support.runs.packable import ALICE, begin, child, evaluate

pytestmark = pytest.mark.starts_processes

Files = dict[str, bytes]


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    with begin(tmp_path / "archive" / "small") as run:
        child(run)
        evaluate(run, "nothing of note")
    pack(tmp_path / "archive" / "small", tmp_path / "good.dgm", ALICE)
    return tmp_path / "good.dgm"


def contents(file: Path) -> Files:
    with lzma.open(file) as stream, tarfile.open(fileobj=stream) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def rewritten(
    packed: Path, files: Files, headers: Callable[[tarfile.TarInfo], None] = lambda _: None
) -> Path:
    """A pack of these files as they are, the manifest included."""
    target = packed.with_name("bad.dgm")
    with lzma.open(target, "wb") as stream, tarfile.open(fileobj=stream, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            headers(member)
            tar.addfile(member, io.BytesIO(data) if member.isreg() else None)
    return target


def with_manifest(files: Files, **changes: object) -> Files:
    """The same with a manifest that fits."""
    body = json.loads(files[MANIFEST]) | changes
    rest = {name: data for name, data in sorted(files.items()) if name != MANIFEST}
    body["members"] = [[name, len(data), hashlib.sha256(data).hexdigest()] for name, data in rest.items()]
    return {MANIFEST: json.dumps(body).encode(), **rest}


def refused(file: Path, message: str) -> None:
    target = file.parent / "out" / "run"
    with pytest.raises(DgmError, match=message):
        unpack(file, target)
    assert not target.exists()
    assert not (target.parent.exists() and list(target.parent.iterdir()))
    assert not (file.parent / "outside").exists()


def test_a_folder_that_holds_something_is_not_overwritten(packed: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="already exists"):
        unpack(packed, tmp_path / "archive")


def test_a_damaged_member_is_named(packed: Path) -> None:
    files = contents(packed)
    name = "run.json"
    files[name] = files[name][:-1] + b"\0"
    refused(rewritten(packed, files), f"{name}: its checksum differs: the file is damaged")


def test_a_damaged_header_is_said_to_be_damage(packed: Path) -> None:
    with lzma.open(packed) as stream, tarfile.open(fileobj=stream) as tar:
        second = tar.getmembers()[1]
    with lzma.open(packed) as stream:
        data = bytearray(stream.read())
    data[second.offset : second.offset + 4] = bytes(4)
    bad = packed.with_name("bad.dgm")
    bad.write_bytes(lzma.compress(bytes(data)))
    refused(bad, f"{second.name}: no header before it .*: the file is damaged")


@pytest.mark.parametrize("cut", [0, 1, 30, 1000, -1, -40])
def test_a_file_that_ends_early_is_refused(packed: Path, cut: int) -> None:
    bad = packed.with_name("bad.dgm")
    bad.write_bytes(packed.read_bytes()[:cut])
    refused(bad, "too early|not a packed run")


@pytest.mark.parametrize("data", [b"plain text, no pack", lzma.compress(b"x" * 5000), b""])
def test_what_is_no_pack_is_refused(packed: Path, data: bytes) -> None:
    bad = packed.with_name("bad.dgm")
    bad.write_bytes(data)
    refused(bad, "not a packed run|too early")


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "/tmp/outside",
        "traces/../../outside",
        "agents.git/config",
        "agents.git/hooks/post-commit",
    ],
)
def test_names_that_no_run_has_are_refused(packed: Path, name: str) -> None:
    files = contents(packed) | {name: b"x"}
    refused(rewritten(packed, with_manifest(files)), "is not a file of a run")


def test_a_member_that_the_manifest_does_not_name_is_refused(packed: Path) -> None:
    files = contents(packed)
    refused(rewritten(packed, files | {"zzz": b"x"}), "more than its manifest names")
    first, *rest = files.items()
    refused(
        rewritten(packed, dict([first, ("aaa", b"x"), *rest])), "'aaa' is not what the manifest names here"
    )


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(packed: Path, kind: bytes) -> None:
    def change(member: tarfile.TarInfo) -> None:
        if member.name == "run.json":
            member.type, member.linkname = kind, "/etc/passwd"

    refused(rewritten(packed, contents(packed), change), "run.json")


def test_a_bomb_is_refused_before_it_is_read(packed: Path) -> None:
    body = json.loads(contents(packed)[MANIFEST])
    for entry in body["members"]:
        entry[1] = 10**15
    refused(rewritten(packed, {MANIFEST: json.dumps(body).encode()}), "are not unpacked")


def test_a_manifest_without_end_is_refused(packed: Path) -> None:
    member = tarfile.TarInfo(MANIFEST)
    member.size = 10**11
    bad = packed.with_name("bad.dgm")
    bad.write_bytes(lzma.compress(member.tobuf(tarfile.GNU_FORMAT)))
    refused(bad, "manifest.json: larger than")


def test_a_small_pack_does_not_unpack_to_a_thousand_times_its_size(packed: Path) -> None:
    body = json.loads(contents(packed)[MANIFEST])
    body["members"][0][1] = 1_100_000_000
    refused(rewritten(packed, {MANIFEST: json.dumps(body).encode()}), "bytes are not unpacked")


def test_a_pack_may_unpack_to_a_gigabyte_and_a_thousand_times_its_size(packed: Path) -> None:
    body = json.loads(contents(packed)[MANIFEST])
    others = sum(size for _, size, _ in body["members"][1:])
    least = rewritten(packed, {MANIFEST: json.dumps(body).encode()}).stat().st_size - 100
    body["members"][0][1] = 1_000_000_000 + MAX_RATIO * least - others
    with PackReader(rewritten(packed, {MANIFEST: json.dumps(body).encode()})) as reader:
        assert reader.manifest.members[0].size > 1_000_000_000
    body["members"][0][1] += MAX_RATIO * 200
    refused(rewritten(packed, {MANIFEST: json.dumps(body).encode()}), "bytes are not unpacked")


def test_a_manifest_larger_than_a_true_one_is_not_read(packed: Path) -> None:
    refused(rewritten(packed, {MANIFEST: b" " * 2_000_000 + b"{}"}), "manifest.json: larger than")
    refused(rewritten(packed, {MANIFEST: b"[" * 500_000}), "manifest.json: not what dgm wrote")


def test_newer_formats_are_refused(packed: Path) -> None:
    refused(rewritten(packed, with_manifest(contents(packed), format=3)), "made by a newer dgm")


@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 200])
def test_a_run_with_an_unusable_name_is_refused(packed: Path, name: str) -> None:
    run = {"id": "1", "name": name}
    refused(rewritten(packed, with_manifest(contents(packed), run=run)), "is not the name of a run")


@pytest.mark.parametrize("body", [b"[]", b"{}", b"{", b'{"format": 1e999}', b'{"format": 1, "dgm": 2}'])
def test_a_manifest_that_is_none_is_refused(packed: Path, body: bytes) -> None:
    refused(rewritten(packed, {MANIFEST: body}), "manifest.json: not what dgm wrote")


@pytest.mark.parametrize("name", ["run.json", "run.db"])
def test_a_run_without_one_of_its_parts_is_refused(packed: Path, name: str) -> None:
    files = contents(packed)
    del files[name]
    refused(rewritten(packed, with_manifest(files)), name)


def test_a_pack_of_git_that_is_damaged_is_refused(packed: Path) -> None:
    files = contents(packed)
    name = next(name for name in files if name.endswith(".pack"))
    files[name] = files[name][:60] + b"\xff\xff" + files[name][62:]
    refused(rewritten(packed, with_manifest(files)), "git index-pack")
