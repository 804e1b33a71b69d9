"""The image that sandboxes start from knows its users, is made once, and is made again where it is gone."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_client import HELPER, helper_container
from dgm.sandboxes.prepared import prepare
from dgm.sandboxes.volumes import remove_volume
from tests.docker.conftest import Inside, spec

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


def test_a_volume_of_the_image_is_read_only_and_leaves_nothing_behind(engine, runner):
    if not isinstance(engine, DockerEngine):
        pytest.skip("bubblewrap has no images")
    api, name = engine.client.api, "dgm-test/volumes:1"
    command = ["sh", "-c", "mkdir /data; echo 1 >/data/old"]
    host = api.create_host_config(network_mode="none")
    container = api.create_container(engine.build("python"), command, host_config=host)
    api.start(container)
    api.wait(container)
    api.commit(container, "dgm-test/volumes", "1", changes=["VOLUME /data /work /work/deep /var/lib/more"])
    api.remove_container(container)

    def volumes_of(image):
        return engine.client.volumes.list(filters={"label": f"dgm.volume={image}"})

    def anonymous_volumes():
        names = {volume.name for volume in engine.client.volumes.list()}
        return {name for name in names if not name.startswith("dgm-")}

    before, tag = anonymous_volumes(), prepare(engine.client, name).tag
    ident = engine.client.images.get(tag).id

    async def work():
        async with engine.open(replace(spec(), image=f"docker:{name}")) as sandbox:
            look = (
                "cat /data/old; echo 2 >/data/new; echo 3 >/var/lib/more/new; cd /work/deep; echo 4 >f; cat f"
            )
            return await sandbox.exec(["sh", "-c", look], timeout_s=60)

    try:
        for _ in range(2):
            lines = runner.run(work()).output.decode().splitlines()
        # One for each of the two folders, and a name of each.
        assert len(volumes_of(ident)) == 4
    finally:
        for volume in volumes_of(ident):
            remove_volume(engine.client, volume.name)
        for image in (tag, name):
            engine.client.images.remove(image)
    assert (lines[0], lines[-1]) == ("1", "4")
    assert sum("Read-only file system" in line for line in lines) == 2
    assert anonymous_volumes() <= before


def test_a_helper_of_a_process_that_was_killed_is_removed(engine, runner):
    if not isinstance(engine, DockerEngine):
        pytest.skip("bubblewrap has no helpers")
    die = (
        "import os; from dgm.sandboxes.docker import DockerEngine; from dgm.sandboxes import engine_client\n"
        "engine = DockerEngine()\n"
        "with engine_client.helper_container(engine.client, engine.build('python'), '64m') as ident:\n"
        "    print(ident, flush=True); os._exit(9)"
    )
    done = subprocess.run([sys.executable, "-c", die], capture_output=True, text=True, check=False)
    assert find_helpers(engine, done.stdout.strip())
    with helper_container(engine.client, engine.build("python"), "64m") as living:
        assert runner.run(engine.reap({"dgm.run": "none"})) == 0
        assert find_helpers(engine, living)
    assert not find_helpers(engine, done.stdout.strip())


def find_helpers(engine, ident):
    return engine.client.api.containers(all=True, filters={"name": HELPER, "id": ident})
