"""A stranger's folder: what is read of it lies below it, and is a file."""

import os
import socket
import tracemalloc

import pytest

from dgm.errors import UserError
from dgm.folders import list_files, read_below, read_file, read_folder, resolve_below

OUTSIDE = [
    "/etc/passwd",
    "../secret",
    "a/../../secret",
    "out",
    "out/more",
    "chain",
    "climbing",
    "deep/out",
    "loop",
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "secret").write_text("of the host")
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "file").write_text("data")
    for name, target in {
        "in": "deep/../file",
        "also": "./in",
        "folders": "deep",
        "deep/up": "../file",
        "out": "../secret",
        "chain": "out",
        "climbing": "folders/../../secret",
        "deep/out": "../../secret",
        "absolute": f"{tmp_path}/folder/file",
        "loop": "loop",
    }.items():
        (folder / name).symlink_to(target)
    return folder


@pytest.mark.parametrize("name", [*OUTSIDE, "absolute", "x\0y"])
def test_what_leads_out_is_refused_by_name(folder, name):
    with pytest.raises(UserError, match="leads out of"):
        resolve_below(folder, name)


@pytest.mark.parametrize("name", ["file", "in", "also", "deep/up", "folders/up", "deep/../file"])
def test_links_that_stay_below_are_followed(folder, name):
    assert resolve_below(folder, name) == folder / "file"
    assert read_below(folder, name) == b"data"


def test_a_folder_is_read_with_links_as_links(folder):
    for name in ("out", "chain", "climbing", "deep/out", "absolute", "loop"):
        (folder / name).unlink()
    found = read_folder(folder)
    assert list(found) == ["also", "deep/up", "file", "folders", "in"]
    assert (found["folders"].data, found["folders"].mode) == (b"deep", 0o120000)


@pytest.mark.parametrize("name", ["out", "deep/out", "absolute", "chain", "climbing", "loop"])
def test_one_link_out_is_enough_to_refuse_the_folder(folder, name):
    for other in ("out", "chain", "climbing", "deep/out", "absolute", "loop"):
        if other != name and (name, other) != ("chain", "out"):
            (folder / other).unlink()
    with pytest.raises(UserError, match="leads out of"):
        list_files(folder)


def test_pipes_and_sockets_are_neither_listed_nor_opened(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=r"pipe: neither a file nor a folder"):
        list_files(tmp_path)
    with pytest.raises(UserError, match=r"pipe: is a pipe, socket or device; expected a file"):
        read_file(tmp_path / "pipe")
    (tmp_path / "pipe").unlink()
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        with pytest.raises(UserError, match=r"socket: neither a file nor a folder"):
            list_files(tmp_path)


@pytest.mark.parametrize("place", ["/dev/zero", "/dev/null"])
def test_devices_are_not_opened(place, tmp_path):
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(UserError, match="device"):
        read_file(tmp_path / "link")


def test_large_and_missing_files_are_one_line(tmp_path):
    (tmp_path / "large").write_bytes(b"x" * 11)
    with pytest.raises(UserError, match=r"large: larger than 10 bytes"):
        read_file(tmp_path / "large", 10)
    with pytest.raises(UserError, match=r"gone: missing"):
        read_file(tmp_path / "gone")
    with pytest.raises(UserError, match=r"is a folder; expected a file"):
        read_file(tmp_path)


def test_a_small_file_takes_little_memory_whatever_the_limit(tmp_path):
    (tmp_path / "small").write_text("x\n")
    tracemalloc.start()
    assert read_file(tmp_path / "small", 100_000_000) == b"x\n"
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 1_000_000


def test_folders_that_are_skipped_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setattr("dgm.folders.FOLDER_FILES", 2)
    for name in (
        "environments/a/packages/x/1",
        "environments/b/packages/2",
        "environments/b/lock",
        "tasks/3",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert list_files(tmp_path, "environments/*/packages") == ["environments/b/lock", "tasks/3"]
    with pytest.raises(UserError, match="more than 2 files"):
        list_files(tmp_path)
