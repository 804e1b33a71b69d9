"""Podman as root: a search through its socket, and sandboxes of one that is reached as if it were on another machine.

Its storage and its services are the test's own. The image of the recipe ``python`` comes from Docker, if that answers.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes import recipes
from dgm.sandboxes.choose import choose
from dgm.sandboxes.docker import DockerEngine
from dgm.sandboxes.engine_address import parse_address, use_engine
from tests.docker.conftest import spec
from tests.support.small_search import EVALUATIONS, perform_search

pytestmark = [pytest.mark.docker, pytest.mark.sandbox, pytest.mark.slow]


def lacks():
    """What keeps this test from running; empty if nothing."""
    missing = [name for name in ("podman", "catatonit", "conmon") if not shutil.which(name)]
    if missing:
        return f"there is no {' and no '.join(missing)}"
    return "" if os.geteuid() == 0 else "only root's Podman is tried here"


class Podman:
    """A storage of Podman's, and services on it."""

    def __init__(self, folder, door):
        self.folder, self.door = folder, door
        self._words = ["podman", "--root", str(folder / "root"), "--runroot", str(door / "run")]

    def run(self, *words, check=False):
        return subprocess.run(
            [*self._words, *words], capture_output=True, text=True, env=self._environment(""), check=check
        )

    @contextlib.contextmanager
    def serving(self, address, containers=""):
        """Serves at an address, with lines of the section ``containers`` of its configuration."""
        words = [*self._words, "system", "service", "--time=0", address]
        with (
            (self.folder / "log").open("ab") as log,
            subprocess.Popen(words, stdout=log, stderr=log, env=self._environment(containers)) as service,
        ):
            try:
                wait_for(address, service, self.folder / "log")
                yield address
            finally:
                service.terminate()
                try:
                    service.wait(20)
                except subprocess.TimeoutExpired:
                    service.kill()

    def _environment(self, containers):
        # crun, the default, refuses machines with both versions of control groups.
        runtime = 'runtime = "runc"\n' if shutil.which("runc") else ""
        text = f"[containers]\n{containers}\n[engine]\n{runtime}exit_command_delay = 1\n"
        file = self.folder / f"containers-{len(containers)}.conf"
        file.write_text(text)
        return {**os.environ, "CONTAINERS_CONF": str(file)}

    def remove(self):
        self.run("rm", "--all", "--force", "--time", "0")
        self.run("rmi", "--all", "--force")
        subprocess.run(
            ["umount", "--lazy", str(self.folder / "root" / "overlay")], capture_output=True, check=False
        )
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.door, ignore_errors=True)


def wait_for(address, service, log):
    ends = time.monotonic() + 60
    while True:
        try:
            DockerEngine(parse_address(address, "")).close()
        except Infrastructure as error:
            if service.poll() is not None or time.monotonic() > ends:
                refuse(f"{error}: {log.read_text()[-300:]}")
            time.sleep(0.2)
        else:
            return


def refuse(why):
    if os.environ.get("DGM_REQUIRE_PODMAN") == "1":
        pytest.fail(f"must run with Podman: {why}")
    pytest.skip(f"NOT RUN with Podman: {why}")


@pytest.fixture(scope="module")
def podman():
    """Podman, with the image of the recipe ``python``."""
    if why := lacks():
        refuse(why)
    # Below /run: the path of a socket must be short.
    made = Podman(
        *(Path(tempfile.mkdtemp(prefix="dgm-podman-", dir=where)) for where in ("/var/lib", "/run"))
    )
    try:
        tag = recipes.load("python").tag
        with contextlib.suppress(UserError):
            docker = choose("docker")
            docker.build("python")
            with (made.folder / "image.tar").open("wb") as file:
                file.writelines(docker.client.images.get(tag).save(named=tag))
            made.run("load", "--input", str(made.folder / "image.tar"), check=True)
        yield made
    finally:
        made.remove()


@pytest.fixture(scope="module")
def local(podman):
    with podman.serving(f"unix://{podman.door}/podman.sock") as address:
        yield address


def test_a_search(local, podman, tmp_path):
    evaluations, calls = perform_search(tmp_path, "there", DGM_ENGINE=local)
    assert (evaluations["graded"], evaluations["invalid"]) == (EVALUATIONS, 0)
    assert calls > 0
    assert podman.run("ps", "--all", "--quiet").stdout == ""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def test_elsewhere_it_is_refused(podman, runner):
    async def look(address):
        with use_engine(address):
            async with choose("docker").open(spec()):
                raise AssertionError("a sandbox was opened")

    with podman.serving(f"tcp://127.0.0.1:{free_port()}") as address:
        with pytest.raises(UserError, match="would use the seccomp profile of its own machine"):
            runner.run(look(address))
        assert podman.run("ps", "--all", "--quiet").stdout == ""
