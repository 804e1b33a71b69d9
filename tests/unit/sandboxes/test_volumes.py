"""Volumes go when nobody used them for a week, and their markers with them."""

import datetime
from types import SimpleNamespace

import docker
import pytest

from dgm.sandboxes.uses import UNUSED_S, note_use
from dgm.sandboxes.volumes import collect


class Client:
    """The part of an engine that holds volumes (name → seconds since it was made); those in ``busy`` are mounted."""

    def __init__(self, ages, busy=()):
        now = datetime.datetime.now(datetime.UTC)
        self.held = {name: (now - datetime.timedelta(seconds=age)).isoformat() for name, age in ages.items()}
        self.busy = busy
        self.volumes = SimpleNamespace(list=lambda filters: list(map(self._make, self.held)), get=self._make)

    def _make(self, name):
        return SimpleNamespace(
            name=name, attrs={"CreatedAt": self.held[name]}, remove=lambda force: self._remove(name)
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
        ages |= {name: old, f"{name}-filled": old}
    client = Client({**ages, "dgm-shown-new": 60}, busy=["dgm-shown-busy"])
    note_use("dgm-shown-used")
    collect(client)
    assert list(client.held) == ["dgm-shown-used", "dgm-shown-used-filled", "dgm-shown-busy", "dgm-shown-new"]
