"""Content shown to an engine: packed folders of the host, and volumes that go when nobody used them for a week."""

import datetime
import io
import os
import socket
import tarfile
from types import SimpleNamespace

import docker
import pytest

from dgm.errors import Infrastructure
from dgm.protocols import Mount
from dgm.sandboxes.engine_client import UNUSED_S, note_use
from dgm.sandboxes.volumes import VolumeStore, collect, pack_folders

FILLED = "dgm.volume.filled"


class Client:
    """The part of an engine that holds volumes (name → seconds since it was made); those in ``busy`` are mounted."""

    def __init__(self, ages, busy=()):
        now = datetime.datetime.now(datetime.UTC)
        self.held = {name: (now - datetime.timedelta(seconds=age)).isoformat() for name, age in ages.items()}
        self.busy = busy
        self.volumes = SimpleNamespace(list=lambda filters: list(map(self._make, self.held)), get=self._make)

    def _make(self, name):
        return SimpleNamespace(
            name=name,
            attrs={"CreatedAt": self.held[name], "Labels": {} if "-" in name[10:] else {FILLED: f"{name}-1"}},
            remove=lambda force: self._remove(name),
        )

    def _remove(self, name):
        if name in self.busy:
            raise docker.errors.APIError("conflict", explanation="volume is in use")
        del self.held[name]


@pytest.fixture(autouse=True)
def _notes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_what_was_not_used_for_a_week_is_removed():
    old, ages = UNUSED_S + 60, {}
    for name in ("dgm-shown-old", "dgm-shown-used", "dgm-shown-busy"):
        ages |= {name: old, f"{name}-1": old}
    client = Client({**ages, "dgm-shown-new": 60}, busy=["dgm-shown-busy-1"])
    note_use("dgm-shown-used")
    collect(client)
    assert list(client.held) == ["dgm-shown-used", "dgm-shown-used-1", "dgm-shown-busy-1", "dgm-shown-new"]


def test_a_volume_is_filled_once_and_never_again_where_its_name_was_removed():
    held, filled = {}, []

    def get(name):
        if name not in held:
            raise docker.errors.NotFound("gone")
        return SimpleNamespace(name=name, attrs={"Labels": held[name]}, remove=lambda force: held.pop(name))

    volumes = SimpleNamespace(get=get, create=lambda name, labels: held.update({name: labels}))
    store = VolumeStore(SimpleNamespace(client=SimpleNamespace(volumes=volumes)))
    first = store._ensure("dgm-shown-a", "packages", filled.append)
    assert store._ensure("dgm-shown-a", "packages", filled.append) == first
    del held["dgm-shown-a"]
    assert store._ensure("dgm-shown-a", "packages", filled.append) != first
    assert filled == [first, store._find_filled("dgm-shown-a")]


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
