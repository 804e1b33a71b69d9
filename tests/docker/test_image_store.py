"""The engine's store of images: what is made again, and what is thrown away."""

import contextlib
import os

import docker
import pytest

from dgm.sandboxes.engine_client import note_of
from dgm.sandboxes.image_store import ImageStore
from tests.docker.test_in_image_workspaces import build, engine, left
from tests.support.image_registry import serve_images

pytestmark = [pytest.mark.docker, pytest.mark.sandbox]
__all__ = ["engine"]


KIND = f"dgm/test-store-{os.getpid()}"
"""Name of the images of this test alone."""


@pytest.fixture
def store(engine, tmp_path, monkeypatch):
    """A store with notes of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return ImageStore(engine.client)


@pytest.fixture
def prepared(engine, store):
    """Two prepared images, the first one the longer unused."""
    names = [f"dgm-test/store-{n}:1" for n in range(2)]
    tags = [f"{KIND}:{n}" for n in range(2)]
    remove(engine, names + tags)  # of a session that was killed
    for n, (name, tag) in enumerate(zip(names, tags, strict=True)):
        build(engine, name, f"git init -q /testbed; head -c 3000000 /dev/urandom > /testbed/blob{n}")
        assert store.prepare(name, tag)
    os.utime(note_of(tags[0]), (1000, 1000))
    yield names, tags
    remove(engine, names + tags)


def remove(engine, images):
    for each in images:
        with contextlib.suppress(docker.errors.ImageNotFound):
            engine.client.images.remove(each, force=True)


def test_a_changed_image_is_prepared_again(engine, store, prepared):
    names, tags = prepared
    outdated = [engine.client.images.get(each).id for each in (tags[0], names[0])]
    build(engine, names[0], "git init -q /testbed; echo new > /testbed/new.txt")
    assert store.prepare(names[0], tags[0])
    assert not store.prepare(names[0], tags[0])
    said, *_ = left(engine, tags[0], "ls")
    assert said == "new.txt\n"
    assert not store.has(outdated[0])
    engine.client.images.remove(outdated[1])


def test_a_prepared_image_outlives_what_it_was_made_from(engine, store, prepared):
    names, tags = prepared
    engine.client.images.remove(names[0], force=True)
    assert not store.prepare(names[0], tags[0])
    assert left(engine, tags[0], "ls")[0] == "blob0\n"


def test_an_image_that_a_registry_offers_is_pulled(engine, store):
    with serve_images() as registry:
        far = f"{registry}/team/pulled:1"
        build(engine, far, "true")
        try:
            wanted = engine.client.images.get(far).id
            assert "error" not in engine.client.api.push(far)
            remove(engine, [far])
            assert (store.offered(far), store.offered(f"{registry}/team/none:1")) == (True, False)
            store.pull(far)
            assert engine.client.images.get(far).id == wanted
        finally:
            remove(engine, [far])
