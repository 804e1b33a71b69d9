"""What is read from an engine's answers about itself."""

import pytest

from dgm.sandboxes.engine_facts import EngineKind, read_facts
from tests.support.fake_engine import INFO, PODMAN, ROOTLESS, VERSION


def test_an_engine_with_control_groups_bounds_everything():
    found = read_facts(VERSION, INFO)
    assert (found.kind, found.version, found.machine) == (EngineKind.DOCKER, "20.10.24", "x86_64")
    assert (found.rootless, list(found.lacks)) == (False, [])


def test_a_rootless_engine_without_control_groups_bounds_nothing():
    found = read_facts(VERSION, ROOTLESS)
    assert (found.rootless, list(found.lacks)) == (True, ["processes", "memory"])


def test_a_rootless_podman_is_not_believed_where_it_may_set_no_bounds():
    claims = {**ROOTLESS, "PidsLimit": True, "MemoryLimit": True}
    found = read_facts(PODMAN, claims)
    assert (found.kind, list(found.lacks)) == (EngineKind.PODMAN, ["processes", "memory"])
    assert list(read_facts(PODMAN, {**claims, "CgroupVersion": "2"}).lacks) == []


@pytest.mark.parametrize(
    ("said", "machine"), [("amd64", "x86_64"), ("arm64", "aarch64"), ("riscv64", "riscv64")]
)
def test_the_machine_has_the_name_that_its_kernel_gives_it(said, machine):
    assert read_facts({**VERSION, "Arch": said}, INFO).machine == machine
