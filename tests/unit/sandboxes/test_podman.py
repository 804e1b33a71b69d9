"""Podman's own form of what dgm asks of an engine."""

import json
from pathlib import Path

import pytest

from dgm.errors import UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes.container import ContainerBase, Shown, adapt_to_podman, creation_arguments, strip_registry
from dgm.sandboxes.engine_address import parse_address

FAR = parse_address("ssh://far", "--engine")
LOCAL = parse_address("unix:///run/podman/podman.sock", "")


@pytest.fixture
def arguments():
    return creation_arguments(
        SandboxSpec("python"), ContainerBase("image", "python", 10_001), 58_501, Shown()
    )


def test_everything_else_confines_as_in_docker(arguments):
    made = adapt_to_podman(arguments, LOCAL)
    assert made.keys() == arguments.keys()
    changed = {name for name in made if made[name] != arguments[name]}
    assert changed == {"security_opt", "tmpfs", "ulimits"}


def test_the_seccomp_profile_is_a_file(arguments):
    security = adapt_to_podman(arguments, LOCAL)["security_opt"]
    (profile,) = [each for each in security if each.startswith("seccomp=")]
    assert json.loads(Path(profile.removeprefix("seccomp=")).read_text())["defaultAction"] == "SCMP_ACT_ERRNO"
    assert "no-new-privileges" in security


def test_a_tmpfs_keeps_its_size_without_options_that_podman_refuses(arguments):
    made = adapt_to_podman(arguments, LOCAL)["tmpfs"]
    assert made.keys() == arguments["tmpfs"].keys()
    for target, options in made.items():
        before, after = arguments["tmpfs"][target].split(","), options.split(",")
        assert [each for each in before if each not in after] == [
            each for each in before if each.startswith(("nr_inodes=", "uid=", "gid="))
        ]
        assert any(each.startswith("size=") for each in after)


def test_a_podman_elsewhere_is_refused(arguments):
    with pytest.raises(UserError, match=r"^Podman at ssh://far \(--engine\) would use .* seccomp profile"):
        adapt_to_podman(arguments, FAR)


@pytest.mark.parametrize(
    ("tag", "name"),
    [
        ("docker.io/dgm/python:1", "dgm/python:1"),
        ("localhost/dgm/python:1", "dgm/python:1"),
        ("example.org/dgm/python:1", "example.org/dgm/python:1"),
        ("dgm/python:1", "dgm/python:1"),
    ],
)
def test_names_of_images_are_those_that_dgm_gave(tag, name):
    assert strip_registry(tag) == name
