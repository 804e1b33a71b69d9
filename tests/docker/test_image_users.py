"""The volume that tells an image's sandboxes who they are is made once, made again, and goes with its image."""

import pytest

from dgm.sandboxes import image_users, recipes
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_client import EngineConnection
from tests.docker.conftest import Inside


@pytest.fixture
def docker(engine):
    if not isinstance(engine, DockerEngine):
        pytest.skip("bubblewrap has no images")
    return engine


@pytest.fixture
def connection(docker):
    made = EngineConnection(docker.address)
    yield made
    made.close()


@pytest.fixture
def image(docker):
    """An image of this test alone."""
    tag = "dgm-test/users:1"
    docker.client.images.get(docker.build("python")).tag("dgm-test/users", "1")
    yield tag
    if docker.client.images.list(tag):
        docker.client.images.remove(tag, noprune=True)
    image_users.collect(docker.client)


def test_a_volume_is_made_once_and_again_where_it_is_gone(docker, connection, image):
    made = image_users.ensure_etc(connection, image, 10001)
    assert image_users.ensure_etc(connection, image, 10001) == made
    docker.client.volumes.get(made).remove()
    again = image_users.ensure_etc(connection, image, 10001)
    assert again != made
    assert image_users.ensure_etc(connection, image, 10001) == again


def test_volumes_of_images_that_are_gone_are_removed_and_others_stay(docker, connection, image):
    gone = image_users.ensure_etc(connection, image, 10001)
    kept = image_users.ensure_etc(connection, recipes.load("python").tag, 10001)
    docker.client.images.remove(image, noprune=True)
    image_users.collect(docker.client)
    left = {volume.name for volume in docker.client.volumes.list()}
    assert gone not in left
    assert kept in left


def test_a_program_knows_its_user_and_the_rest_of_etc_is_the_images(inside: Inside, docker):
    async def work(sandbox):
        return await sandbox.exec(["sh", "-c", "whoami; cat /etc/debian_version; : >/etc/new"], timeout_s=60)

    name, version, refusal = inside(work).output.decode().splitlines()
    assert (name, version[0].isdigit()) == ("agent", True)
    assert "Read-only file system" in refusal
