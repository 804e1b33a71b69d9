"""The look at which system calls are refused: it finds none open in a sandbox, and some in another container."""

import platform

import pytest

from dgm.sandboxes import recipes
from dgm.sandboxes.docker import DockerEngine
from tests.support.refusals import find_allowed, trying_command

pytestmark = pytest.mark.starts_processes


def test_a_sandbox_refuses_what_the_list_does_not_allow(engine, standing, runner):
    machine = engine.machine if isinstance(engine, DockerEngine) else platform.machine()
    assert runner.run(find_allowed(standing, machine)) == []


def test_a_container_without_the_list_is_found_out(engine):
    if not isinstance(engine, DockerEngine):
        pytest.skip("a matter of containers")
    output = engine.client.containers.run(
        recipes.load("python").tag,
        trying_command(engine.machine),
        remove=True,
        user="1000",
        network_mode="none",
        cap_drop=["ALL"],
        security_opt=["seccomp=unconfined"],
    )
    *opened, last = output.decode().splitlines()
    assert {"AF_VSOCK", "AF_NETLINK", "ptrace", "keyctl", "clone into a user namespace"} <= {*opened}
    assert last == "done"
