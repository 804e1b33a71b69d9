"""The options of a container: nothing of the host, read-only content owned by its init process, and Podman's form."""

import json
from pathlib import Path

import pytest

from dgm.errors import UserError
from dgm.protocols import SandboxSpec, SharedSocket
from dgm.sandboxes.container import ContainerBase, Shown, adapt_to_podman, creation_arguments, strip_registry
from dgm.sandboxes.docker_sandbox import count_memory_kills
from dgm.sandboxes.engine_address import parse_address
from dgm.sandboxes.volumes import ShownFolder

BASE = ContainerBase("image", "python", 10001)


def arguments(**given):
    spec = SandboxSpec(image="python", memory_mb=100, **given)
    shown = Shown([ShownFolder("/opt/shown", b"", 5 * 1024 * 1024, 70)], {"/opt/packages": "kept"})
    return creation_arguments(spec, BASE, 58501, shown)


def test_nothing_of_the_host_is_mounted():
    made = arguments(socket=SharedSocket(Path("/host/g.sock"), "/run/dgm/g.sock"))
    assert {"volumes", "binds", "devices"} & made.keys() == set()
    assert [(mount["Type"], mount["Target"], mount["ReadOnly"]) for mount in made["mounts"]] == [
        ("volume", "/opt/packages", True),
    ]
    assert "/host" not in repr({key: value for key, value in made.items() if key != "security_opt"})


def test_what_is_shown_belongs_to_the_keeper_and_is_not_charged_to_the_agent():
    made = arguments()
    assert made["tmpfs"]["/opt/shown"].endswith("size=5242880,nr_inodes=70,mode=0755,uid=10002,gid=10002")
    assert made["mem_limit"] == made["memswap_limit"] == f"{105 * 1024}k"


def test_the_socket_has_a_folder_that_the_agent_cannot_write():
    assert "/run/dgm" not in arguments()["tmpfs"]
    made = arguments(socket=SharedSocket(Path("/host/g.sock"), "/run/dgm/g.sock"))
    assert made["tmpfs"]["/run/dgm"].endswith("mode=0755,uid=10002,gid=10002")


FAR = parse_address("ssh://far", "--engine")
LOCAL = parse_address("unix:///run/podman/podman.sock", "")


@pytest.fixture
def plain():
    return creation_arguments(SandboxSpec("python"), BASE, 58_501, Shown())


def test_everything_else_confines_as_in_docker(plain):
    made = adapt_to_podman(plain, LOCAL)
    assert made.keys() == plain.keys()
    changed = {name for name in made if made[name] != plain[name]}
    assert changed == {"security_opt", "tmpfs", "ulimits"}


def test_the_seccomp_profile_is_a_file(plain):
    security = adapt_to_podman(plain, LOCAL)["security_opt"]
    (profile,) = [each for each in security if each.startswith("seccomp=")]
    assert json.loads(Path(profile.removeprefix("seccomp=")).read_text())["defaultAction"] == "SCMP_ACT_ERRNO"
    assert "no-new-privileges" in security


def test_a_tmpfs_keeps_its_size_without_options_that_podman_refuses(plain):
    made = adapt_to_podman(plain, LOCAL)["tmpfs"]
    assert made.keys() == plain["tmpfs"].keys()
    for target, options in made.items():
        before, after = plain["tmpfs"][target].split(","), options.split(",")
        assert [each for each in before if each not in after] == [
            each for each in before if each.startswith(("nr_inodes=", "uid=", "gid="))
        ]
        assert any(each.startswith("size=") for each in after)


def test_a_podman_elsewhere_is_refused(plain):
    with pytest.raises(UserError, match=r"^Podman at ssh://far \(--engine\) would use .* seccomp profile"):
        adapt_to_podman(plain, FAR)


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


@pytest.mark.parametrize(
    ("counters", "kills"),
    [
        (b"oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3),
        (b"low 0\nhigh 0\nmax 12\noom 5\noom_kill 2\noom_group_kill 1\n", 2),
        (b"under_oom 0\n", 0),
        (b"", 0),
    ],
    ids=["version 1", "version 2", "an old kernel", "no counters"],
)
def test_kills_for_memory_are_counted(counters, kills):
    assert count_memory_kills(counters) == kills
