"""What a container is made with: nothing of the host, and what is shown belongs to the keeper."""

from pathlib import Path

from dgm.protocols import SandboxSpec, SharedSocket
from dgm.sandboxes.container import ContainerBase, Shown, creation_arguments
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
