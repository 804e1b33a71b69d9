"""Host folders as streams for an engine that sees other files."""

import io
import os
import socket
import tarfile

import pytest

from dgm.errors import Infrastructure
from dgm.protocols import Mount
from dgm.sandboxes.volumes import pack_folders


def packed(folder):
    (shown,) = pack_folders([Mount(folder, "/here")])
    with tarfile.open(fileobj=io.BytesIO(shown.stream)) as archive:
        return shown, {member.name: member for member in archive}


def test_modes_let_everybody_read_and_times_stay(tmp_path):
    (tmp_path / "d").mkdir(mode=0o700)
    (tmp_path / "d" / "f").write_bytes(b"x")
    (tmp_path / "d" / "f").chmod(0o600)
    (tmp_path / "tool").touch(mode=0o700)
    os.utime(tmp_path / "d" / "f", (1_500_000_000, 1_500_000_000))
    _, found = packed(tmp_path)
    assert {name: member.mode for name, member in found.items()} == {"d": 0o755, "d/f": 0o644, "tool": 0o755}
    assert found["d/f"].mtime == 1_500_000_000
    assert list(found).index("d") < list(found).index("d/f")


def test_links_are_kept_and_lead_nowhere_on_the_way(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "folder").symlink_to("/etc")
    (tmp_path / "in" / "file").symlink_to("/etc/passwd")
    _, found = packed(tmp_path / "in")
    assert {name: member.linkname for name, member in found.items()} == {
        "folder": "/etc",
        "file": "/etc/passwd",
    }


def test_what_is_no_file_folder_or_link_is_left_out(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
        assert packed(tmp_path)[1] == {}


def test_the_room_is_enough_for_whole_pages_and_every_entry(tmp_path):
    for number in range(300):
        (tmp_path / f"f{number}").write_bytes(b"x" * 5000)
    shown, _ = packed(tmp_path)
    assert shown.size_bytes >= 300 * 8192
    assert shown.entries > 300


def test_a_second_name_of_a_file_is_a_file(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    (tmp_path / "b").hardlink_to(tmp_path / "a")
    assert [member.isreg() for member in packed(tmp_path)[1].values()] == [True, True]


def test_a_folder_that_is_gone_is_said(tmp_path):
    with pytest.raises(Infrastructure, match=r"cannot read .*gone"):
        packed(tmp_path / "gone")
