"""Agents' own images are kept while they are used, and removed a week later."""

import os
import time
from types import SimpleNamespace

import docker
import pytest

from dgm.sandboxes.kept_agent_images import UNUSED_S, collect, list_agent_images, note_use

NOW = time.time()
LONG_AGO = NOW - 2 * UNUSED_S


class Client:
    """The part of an engine that holds images; those in ``busy`` have containers."""

    def __init__(self, *images, busy=()):
        self.held = dict(images)
        self.busy = busy
        self.api = SimpleNamespace(images=self._list)
        self.images = SimpleNamespace(remove=self._remove)

    def _list(self, name):
        assert name == "dgm/agent"
        return [
            {"RepoTags": [tag], "Size": 5_000_000, "Created": created} for tag, created in self.held.items()
        ]

    def _remove(self, tag):
        if tag in self.busy:
            raise docker.errors.APIError("conflict", explanation="a container uses it")
        del self.held[tag]


@pytest.fixture(autouse=True)
def notes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "dgm" / "agent-images"


def test_an_image_that_was_not_used_for_a_week_is_removed():
    client = Client(("dgm/agent:old", LONG_AGO), ("dgm/agent:new", NOW))
    assert collect(client) == ["dgm/agent:old"]
    assert list(client.held) == ["dgm/agent:new"]


def test_an_old_image_that_was_used_lately_is_kept_until_its_week_is_over(notes):
    client = Client(("dgm/agent:old", LONG_AGO))
    note_use("docker:dgm/agent:old")
    used = time.time()
    assert collect(client, used) == []
    assert collect(client, used + UNUSED_S + 60) == ["dgm/agent:old"]
    assert list(notes.iterdir()) == []


def test_an_image_with_a_container_is_kept():
    client = Client(("dgm/agent:old", LONG_AGO), busy=["dgm/agent:old"])
    assert collect(client) == []


def test_other_images_are_neither_listed_nor_noted(notes):
    note_use("python")
    note_use("docker:dgm/task:1")
    assert not notes.exists()
    assert list_agent_images(Client(("dgm/agent-of-mine:1", LONG_AGO))) == []


def test_images_are_listed_from_the_longest_unused_to_the_newest(notes):
    note_use("dgm/agent:a")
    os.utime(notes / "a", (NOW - 10, NOW - 10))
    client = Client(("localhost/dgm/agent:a", LONG_AGO), ("dgm/agent:b", NOW - 60))
    (b, a) = list_agent_images(client)
    assert (b.tag, a.tag, a.size_bytes) == ("dgm/agent:b", "dgm/agent:a", 5_000_000)
    assert (b.used, a.used) == (NOW - 60, pytest.approx(NOW - 10))
