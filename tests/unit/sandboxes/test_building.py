"""What a build reports of its network, and what is kept of what it leaves."""

import asyncio
import io
import os

import pytest

from dgm.errors import Infrastructure
from dgm.protocols import BuildError
from dgm.sandboxes.building import SandboxBuilder, unpack_result
from dgm.sandboxes.building_inside import ENTRY, write_entries
from tests.support.each_engine import find_engine


@pytest.mark.sandbox
@pytest.mark.starts_processes
def test_an_index_that_cannot_be_reached_is_no_fault_of_what_was_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_INDEX_URL", "http://127.0.0.1:9/simple")

    async def build():
        builder = SandboxBuilder(find_engine("bubblewrap"), {"dgm.run": f"tests-{os.getpid()}"}, "python")
        async with builder.open() as room:
            await room.run(["uv", "pip", "install", "--target", "x", "tiny"], name="x", timeout_s=120)

    with pytest.raises(Infrastructure, match=r"index cannot be reached: 127\.0\.0\.1: Connect"):
        asyncio.run(build())


def entries(*members):
    packed = (ENTRY.pack(kind, len(name), len(data)) + name + data for kind, name, data in members)
    return io.BytesIO(b"".join(packed))


def test_only_files_and_inner_links_are_kept(tmp_path):
    stream = entries(
        (b"d", b"a", b""),
        (b"x", b"a/x", b"1"),
        (b"l", b"a/to-x", b"x"),
        (b"l", b"up", b".."),
        (b"d", b"up", b""),
        (b"f", b"up/planted", b"2"),
        (b"l", b"here", b"."),
        (b"l", b"out", b"here/.."),
        (b"l", b"etc", b"/etc"),
    )
    target = tmp_path / "in" / "target"
    unpack_result(stream, target)
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    kept = {"a", "a/x", "a/to-x", "here", "up", "up/planted"}
    assert found == {"in", "in/target", *(f"in/target/{name}" for name in kept)}
    assert not (target / "up").is_symlink()
    assert (target / "a" / "x").stat().st_mode & 0o7777 == 0o755


@pytest.mark.parametrize(
    "data",
    [
        b"no such result" * 100,
        ENTRY.pack(b"f", 1, 1 << 62) + b"a",
        ENTRY.pack(b"f", 1, 9) + b"a12345678",
        ENTRY.pack(b"l", 1, 1 << 20) + b"a" + bytes(1 << 20),
        entries((b"f", b"../escaped", b"3")).getvalue(),
        entries((b"f", b"/absolute", b"4")).getvalue(),
        entries((b"f", b"no-such-folder/x", b"5")).getvalue(),
        entries((b"d", b"a", b""), (b"f", b"a", b"6")).getvalue(),
        entries(*((b"d", b"/".join([b"a"] * depth), b"") for depth in range(1, 200))).getvalue(),
    ],
)
def test_what_is_no_sound_result_is_refused(tmp_path, data):
    with pytest.raises(BuildError, match="what was installed"):
        unpack_result(io.BytesIO(data), tmp_path / "target")


def test_a_folder_arrives_as_it_was_but_for_what_is_no_file(tmp_path):
    source = tmp_path / "source"
    (source / "a" / "empty").mkdir(parents=True)
    (source / "a" / "program").write_bytes(b"1" * 3_000_000)
    (source / "a" / "program").chmod(0o700)
    (source / os.fsdecode(b"odd\xff")).write_bytes(b"")
    (source / "link").symlink_to("a")
    os.link(source / "a" / "program", source / "hard")
    os.mkfifo(source / "pipe")
    stream = io.BytesIO()
    write_entries(os.fsencode(source), stream)
    stream.seek(0)
    unpack_result(stream, tmp_path / "copy")
    (source / "pipe").unlink()
    names = sorted(path.relative_to(source) for path in source.rglob("*"))
    assert names == sorted(path.relative_to(tmp_path / "copy") for path in (tmp_path / "copy").rglob("*"))
    assert (tmp_path / "copy" / "hard").read_bytes() == (source / "hard").read_bytes()
    assert (tmp_path / "copy" / "link").readlink() == (source / "link").readlink()
