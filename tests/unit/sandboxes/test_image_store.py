"""Images go when nobody uses them, Dockerfiles are built on recipes, and fetch nothing without a network."""

import os
import time
from types import SimpleNamespace

import docker
import pytest

from dgm.domain import Entry
from dgm.errors import UserError
from dgm.sandboxes import recipes
from dgm.sandboxes.engine_client import UNUSED_S, find_last_use, note_of, note_use
from dgm.sandboxes.image_store import AGENT, ImageStore, refuse_addresses, split_tag

NOW = time.time()
LONG_AGO = NOW - 2 * UNUSED_S


class Client:
    """The part of an engine that holds images (tag → time, labels); those in ``busy`` have containers."""

    def __init__(self, images, busy=()):
        self.held = {tag: given if isinstance(given, tuple) else (given, {}) for tag, given in images.items()}
        self.busy = busy
        self.api = SimpleNamespace(
            images=self._list, remove_image=self._remove, inspect_image=self._inspect, history=self._history
        )

    def _list(self):
        return [
            {"RepoTags": [tag], "Size": 5_000_000, "Created": created, "Labels": labels}
            for tag, (created, labels) in self.held.items()
        ]

    def _inspect(self, tag):
        if tag not in self.held:
            raise docker.errors.ImageNotFound("gone")
        return {"RootFS": {"Layers": ["base", tag]}, "Size": 5_000_000}

    def _history(self, tag):
        return [{"Size": 1_000_000}, {"Size": 4_000_000}]

    def _remove(self, tag, noprune):
        if tag in self.busy:
            raise docker.errors.APIError("conflict", explanation="a container uses it")
        if tag not in self.held:
            raise docker.errors.ImageNotFound("gone")
        del self.held[tag]


@pytest.fixture(autouse=True)
def _notes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def set_use(tag, when):
    note_use(tag)
    os.utime(note_of(tag), (when, when))


def test_what_was_not_used_for_a_week_is_removed_and_nobody_elses_image():
    present = recipes.load("python").tag
    client = Client(
        {
            "dgm/agent:old": LONG_AGO,
            "dgm/agent:new": NOW,
            "dgm/prepared:old": LONG_AGO,
            "dgm/python:former": (NOW, {"dgm.image": "dgm/python:former"}),
            "dgm/mine:1": LONG_AGO,
            present: LONG_AGO,
            "acme/app:1": LONG_AGO,
        }
    )
    assert ImageStore(client).collect_unused() == ["dgm/python:former", "dgm/agent:old", "dgm/prepared:old"]
    assert list(client.held) == ["dgm/agent:new", "dgm/mine:1", present, "acme/app:1"]


def test_an_old_image_that_was_used_lately_is_kept_until_its_week_is_over():
    store = ImageStore(Client({"localhost/dgm/task:old": LONG_AGO}))
    note_use("dgm/task:old")
    assert store.collect_unused() == []
    assert store.list_images()[0].used == pytest.approx(time.time(), abs=60)
    assert [image.tag for image in store.list_images([AGENT])] == []
    store = ImageStore(Client({"dgm/task:old": LONG_AGO}))
    assert store.collect_unused(time.time() + UNUSED_S + 60) == ["dgm/task:old"]
    assert find_last_use("dgm/task:old") == 0.0


def test_an_image_with_a_container_is_kept():
    assert ImageStore(Client({"dgm/agent:old": LONG_AGO}, busy=["dgm/agent:old"])).collect_unused() == []


def test_the_longest_unused_images_go_first_until_the_others_fit_with_what_was_pulled_for_them():
    tags = [f"dgm/instance:{number}" for number in range(4)]
    sources = {tag: (LONG_AGO, {"dgm.prepared": f"acme/{tag[-1]}:1"}) for tag in tags}
    client = Client({**sources, "acme/0:1": NOW, "acme/1:1": NOW, "dgm/agent:1": LONG_AGO})
    note_use("pulled acme/0:1")
    for number, tag in enumerate(tags):
        set_use(tag, 1000 + number)
    store = ImageStore(client)
    # Each has a layer of 1 MB beside one of 4 MB that all have.
    assert store.disk_bytes() == 8_000_000
    assert store.collect(8_000_000) == []
    assert store.collect(6_000_000, spared=[tags[1]]) == [tags[0], tags[2]]
    assert list(client.held) == [tags[1], tags[3], "acme/1:1", "dgm/agent:1"]


def test_a_dockerfile_is_built_on_the_tags_of_recipes(monkeypatch):
    store = ImageStore(Client({"debian:some": NOW}))
    monkeypatch.setattr(store, "build_recipe", lambda recipe: f"dgm/{recipe.name}:tag")
    text = b"FROM dgm/python AS low\nCOPY a b\nFROM --platform=x debian:some\nFROM low\nFROM scratch\n"
    built = store._resolve_bases({"Dockerfile": Entry(text), "a": Entry(b"")}, "it")
    assert built["Dockerfile"].data == text.replace(b"dgm/python", b"dgm/python:tag")
    assert built["a"] == Entry(b"")


def test_a_base_that_is_nowhere_is_named(monkeypatch):
    store = ImageStore(Client({}))
    monkeypatch.setattr(store, "offered", lambda reference: False)
    with pytest.raises(UserError, match=r"^it stands on acme/none:1: the engine has no such image"):
        store._resolve_bases({"Dockerfile": Entry(b"FROM acme/none:1\n")}, "it")


@pytest.mark.parametrize(
    ("reference", "parts"),
    [
        ("a/b:1", ("a/b", "1")),
        ("host:5000/a", ("host:5000/a", "latest")),
        ("host:5000/a:2", ("host:5000/a", "2")),
        ("a@sha256:0", ("a", "sha256:0")),
    ],
)
def test_a_reference_is_split_as_the_engine_takes_it(reference, parts):
    assert split_tag(reference) == parts


@pytest.mark.parametrize(
    "line",
    [
        "ADD https://example.org/x /x",
        "  add --chown=1:1 http://127.0.0.1:2375/x /x",
        "ADD \\\n https://example.org/x /x",
        "ADD `\n https://example.org/x /x",
        "ADD \\\n# c\nhttps://example.org/x /x",
        "ADD \\\n\n \n  # c\nhttps://example.org/x /x",
        "ARG X=https\nADD $X /x",
        'ADD ["\\u0068ttp\\u003a//x", "/x"]',
        "ADD git@example.org:x.git /x",
        "ONBUILD ADD https://example.org/x /x",
    ],
)
def test_an_added_address_is_refused(line):
    with pytest.raises(UserError, match=r"fetches an address .*dgm\.trust\(SUITE, network=True\)$") as told:
        refuse_addresses(f"FROM dgm/python\n{line}\n")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("line", ["ADD a.tar /x", "COPY x y", "RUN echo https://x", "# ADD https://x /x"])
def test_all_else_is_built(line):
    refuse_addresses(f"FROM dgm/python\n{line}\n")
