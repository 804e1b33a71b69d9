"""What is read from an engine's answers about itself."""

import socket

import docker
import pytest
import requests
from docker.errors import APIError

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes import engine_client
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.engine_client import SLOW_S, EngineConnection, convert_engine_errors, read_facts, slow_api
from tests.support.fake_engine import INFO, PODMAN, ROOTLESS, VERSION


def test_an_engine_with_control_groups_bounds_everything():
    found = read_facts(VERSION, INFO)
    assert (found.is_podman, found.version, found.machine) == (False, "20.10.24", "x86_64")
    assert (found.rootless, list(found.lacks)) == (False, [])


def test_a_rootless_engine_without_control_groups_bounds_nothing():
    found = read_facts(VERSION, ROOTLESS)
    assert (found.rootless, list(found.lacks)) == (True, ["processes", "memory"])


def test_a_rootless_podman_is_not_believed_where_it_may_set_no_bounds():
    claims = {**ROOTLESS, "PidsLimit": True, "MemoryLimit": True}
    found = read_facts(PODMAN, claims)
    assert (found.is_podman, list(found.lacks)) == (True, ["processes", "memory"])
    assert list(read_facts(PODMAN, {**claims, "CgroupVersion": "2"}).lacks) == []


@pytest.mark.parametrize(
    ("said", "machine"), [("amd64", "x86_64"), ("arm64", "aarch64"), ("riscv64", "riscv64")]
)
def test_the_machine_has_the_name_that_its_kernel_gives_it(said, machine):
    assert read_facts({**VERSION, "Arch": said}, INFO).machine == machine


def test_the_package_that_is_missing_is_named():
    with (
        pytest.raises(Infrastructure, match=r"container-init .*: install the package 'catatonit'"),
        convert_engine_errors("start a sandbox"),
    ):
        raise APIError("500", explanation="container create: container-init binary not found on the host")


def test_an_engine_that_does_not_answer_is_named_with_the_reason(tmp_path):
    address = EngineAddress(f"unix://{tmp_path}/gone.sock", "--engine")
    with pytest.raises(Infrastructure, match=r"answers at unix:.*gone\.sock \(--engine\) \(.*No such file"):
        EngineConnection(address)


def test_the_library_for_ssh_is_asked_for_where_it_is_missing(monkeypatch):
    monkeypatch.delattr("docker.transport.SSHHTTPAdapter")
    with pytest.raises(UserError, match=r"ssh://far: needs the library for ssh: pip install 'dgm\[ssh\]'"):
        EngineConnection(EngineAddress("ssh://far"))


def test_an_engine_that_accepts_and_never_answers_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(engine_client, "_ANSWERS_WITHIN_S", 0.2)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "held.sock"))
        listener.listen()
        address = EngineAddress(f"unix://{tmp_path}/held.sock", "--engine")
        with pytest.raises(
            Infrastructure, match=r"no Docker engine answers at unix:.*held\.sock .*timed out"
        ):
            EngineConnection(address)


def test_calls_on_whole_images_have_a_longer_limit():
    client = docker.DockerClient("unix:///nowhere.sock", version="1.41", timeout=60)
    assert (slow_api(client).timeout, client.api.timeout) == (SLOW_S, 60)
    assert slow_api(client).adapters == client.api.adapters


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (requests.ReadTimeout("read timeout=60"), "did not answer in time .*: it is paused or overloaded"),
        (requests.ConnectionError("refused"), "no Docker engine answers .*: start it"),
    ],
)
def test_a_call_without_an_answer_says_why(error, words):
    with (
        pytest.raises(Infrastructure, match=f"^cannot start a sandbox: .*{words}"),
        convert_engine_errors("start a sandbox"),
    ):
        raise error
