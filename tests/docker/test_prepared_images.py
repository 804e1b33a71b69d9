"""The image that sandboxes start from knows its users, is made once, and is made again where it is gone."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.prepared import prepare
from tests.docker.conftest import Inside

pytestmark = [pytest.mark.docker, pytest.mark.sandbox]


@pytest.fixture
def image(engine):
    """An image of this test alone."""
    if not isinstance(engine, DockerEngine):
        pytest.skip("bubblewrap has no images")
    container = engine.client.containers.create(engine.build("python"), ["true"])
    made = container.commit("dgm-test/users", "1", changes="LABEL dgm-test=1")
    container.remove()
    yield made.id
    engine.client.images.remove(made.id, force=True)


def test_an_image_is_prepared_once_whoever_asks_and_again_where_it_is_gone(engine, image):
    with ThreadPoolExecutor(4) as threads:
        results = list(threads.map(lambda _: prepare(engine.client, image), range(4)))
    assert len({result.tag for result in results}) == 1
    assert sorted(result.made for result in results) == [False, False, False, True]
    tag = results[0].tag
    assert prepare(engine.client, tag) == (tag, False)
    engine.client.images.remove(tag)
    assert prepare(engine.client, image) == (tag, True)
    assert prepare(engine.client, image, group=10_500).tag != tag
    for each in (tag, prepare(engine.client, image, group=10_500).tag):
        engine.client.images.remove(each)


def test_a_program_knows_its_user_and_the_rest_of_etc_is_the_images(inside: Inside, engine):
    if not isinstance(engine, DockerEngine):
        pytest.skip("bubblewrap has no images")

    async def work(sandbox):
        look = "whoami; id -gn; cat /etc/debian_version; : >/etc/new"
        return await sandbox.exec(["sh", "-c", look], timeout_s=60)

    name, group, version, refusal = inside(work).output.decode().splitlines()
    assert (name, group, version[0].isdigit()) == ("agent", "agent", True)
    assert "Read-only file system" in refusal
