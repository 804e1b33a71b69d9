"""The folders that a node keeps: by their contents, within a bound, and never one away that a sandbox shows."""

import os

import pytest

from dgm.errors import Infrastructure
from dgm.protocols import Mount
from dgm.sandboxes.ray.cache import FolderCache, pack_for_nodes


def packed(place, name, size=10):
    folder = place / name
    folder.mkdir()
    (folder / "file").write_bytes(name.encode() * size)
    return pack_for_nodes([Mount(folder, "/shown")])[0]


@pytest.fixture
def cache(tmp_path):
    place = tmp_path / "cache"
    place.mkdir()
    return FolderCache(place, 20_000)


def test_a_folder_arrives_with_modes_links_and_times(tmp_path, cache):
    folder = tmp_path / "given"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "tool").write_text("#!/bin/sh\n")
    (folder / "sub" / "tool").chmod(0o755)
    (folder / "plain").write_text("x")
    os.utime(folder / "plain", (1_000_000, 1_000_000))
    (folder / "link").symlink_to("/nowhere/at/all")
    one = pack_for_nodes([Mount(folder, "/shown", digest="d")])[0]
    path = cache.store("s1", one.digest, one.stream)
    assert (one.target, one.constant, path.stat().st_mode & 0o777) == ("/shown", True, 0o755)
    assert (path / "sub" / "tool").stat().st_mode & 0o777 == 0o755
    assert ((path / "plain").stat().st_mode & 0o777, (path / "plain").stat().st_mtime) == (0o644, 1_000_000)
    assert os.readlink(path / "link") == "/nowhere/at/all"


def test_what_was_not_used_for_longest_goes_first(tmp_path, cache):
    one, two, three = (packed(tmp_path, name) for name in ("one", "two", "three"))
    for each in (one, two):
        cache.store("s", each.digest, each.stream)
    cache.release("s")
    assert cache.hold("t", one.digest)
    cache.release("t")
    cache.limit_bytes = 2 * 8192
    cache.store("u", three.digest, three.stream)
    assert cache.hold("v", two.digest) is None
    assert cache.hold("v", one.digest)
    assert cache.size_bytes <= cache.limit_bytes


def test_what_a_sandbox_shows_stays_whatever_the_bound_is(tmp_path, cache):
    one = packed(tmp_path, "one", 5000)
    path = cache.store("s", one.digest, one.stream)
    assert cache.size_bytes > cache.limit_bytes
    assert (path / "file").exists()
    cache.release("s")
    assert (path.exists(), cache.size_bytes) == (False, 0)


def test_two_sandboxes_hold_the_same_folder(tmp_path, cache):
    one = packed(tmp_path, "one")
    cache.limit_bytes = 1
    path = cache.store("s", one.digest, one.stream)
    assert cache.hold("t", one.digest) == path
    cache.release("s")
    assert path.exists()
    cache.release("t")
    assert not path.exists()


def test_a_damaged_stream_is_refused_and_leaves_nothing(tmp_path, cache):
    one = packed(tmp_path, "one")
    with pytest.raises(Infrastructure, match="arrived damaged"):
        cache.store("s", one.digest, one.stream[:-600] + bytes(600) + b"x")
    assert (cache.size_bytes, list((tmp_path / "cache").iterdir())) == (0, [])


@pytest.mark.parametrize("name", ["../out", "/etc/out", "a/../../out"])
def test_a_path_that_leads_out_is_refused(tmp_path, cache, name):
    import hashlib
    import io
    import tarfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(name), io.BytesIO(b""))
    digest = hashlib.sha256(stream.getvalue()).hexdigest()
    with pytest.raises(Infrastructure, match="leads out"):
        cache.store("s", digest, stream.getvalue())
    assert not (tmp_path / "out").exists()
    assert list((tmp_path / "cache").iterdir()) == []
