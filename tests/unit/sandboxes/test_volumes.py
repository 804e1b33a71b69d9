"""Volumes go when nobody used them for a week, and their names with them."""

import datetime
from types import SimpleNamespace

import docker
import pytest

from dgm.sandboxes.engine_client import UNUSED_S, note_use
from dgm.sandboxes.volumes import VolumeStore, collect

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
