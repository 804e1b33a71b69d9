"""The creation of a sandbox's container: every flag that confines it, in one place.

Each has a user id of its own, taken by the container's name, which the engine gives only once.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgm.errors import Infrastructure
from dgm.protocols import SandboxSpec
from dgm.sandboxes import image_users, podman, recipes, users
from dgm.sandboxes.engine_client import find_image
from dgm.sandboxes.engine_connection import EngineConnection
from dgm.sandboxes.engine_facts import EngineKind
from dgm.sandboxes.seccomp import profile

if TYPE_CHECKING:
    from docker import DockerClient

SHARES = {"/work": 8, "/tmp": 4, "/agent": 2, "/job": 2}
"""Shares of ``disk_mb``: the engine has no bound over several folders, so each has its own."""
LABEL = "dgm.sandbox"
IN_ENGINE = "docker:"
"""Prefix of an image in the engine, in a place where a recipe's name may stand."""
COPIED_MB = "dgm.work.mb"
"""Label of an image: MiB for a copy of its repository."""
_OWN_IMAGE = "python"
"""Recipe whose group works in images that are not made from a recipe."""
_OWN_PIDS = 4
"""Processes of the container's init and sleeper, and of the engine's own steps into it."""
_MIB = 1024 * 1024
_BYTES_PER_FILE = 4096
_OPEN_FILES = 1024
_NAME_TAKEN = "already in use"


@dataclass(frozen=True, slots=True)
class ContainerBase:
    """The base of a container."""

    image: str
    """Image name for the engine."""
    name: str
    """Image name for people."""
    group: int
    """Gid of everything that an agent runs."""
    copied_mb: int = 0
    """MiB for a copy of one of its folders, if the image has the label."""
    path: tuple[str, ...] = ()
    """Additional folders with commands."""

    @property
    def keeper(self) -> int:
        """The uid of the container's sleeper: not the sandbox's user, who could end the sandbox by killing it."""
        return self.group + 1


def create(connection: EngineConnection, spec: SandboxSpec, base: ContainerBase) -> tuple[str, int]:
    """Create a container, and return its id and the uid of its programs, which no other one has.

    Raises:
        UserError: the engine cannot confine it from here.
        Infrastructure: all user ids are taken.
    """
    import docker

    client = connection.client
    passwd = image_users.passwd_file(client, base.image, base.group)
    for uid in users.in_random_order(users.DOCKER):
        try:
            arguments = creation_arguments(spec, base, uid, passwd)
            if connection.facts.kind is EngineKind.PODMAN:
                arguments = podman.adapt_creation(arguments, connection.address)
            made = client.containers.create(**arguments)
        except docker.errors.APIError as error:
            if _NAME_TAKEN in str(error.explanation):
                continue
            raise
        return str(made.id), uid
    raise Infrastructure(f"all {len(users.DOCKER)} user ids of sandboxes are taken: end some of them")


def creation_arguments(spec: SandboxSpec, base: ContainerBase, uid: int, passwd: Path) -> dict[str, Any]:
    """Return the arguments of ``containers.create`` for programs of the user ``uid``, who is in ``passwd``.

    The main process sleeps for the lifetime, and the engine removes the container at its end: a sandbox whose owner
    died goes away by itself.
    """
    from docker.types import LogConfig, Mount, Ulimit

    # The contents of a tmpfs count as memory; the agent is not charged for the copied files.
    memory = f"{spec.memory_mb + base.copied_mb * len(spec.filled)}m"
    return {
        "name": f"dgm-sandbox-{uid}",
        "image": base.image,
        # Else the library would put the proxies of its user's configuration, passwords included, into the environment.
        "use_config_proxy": False,
        "command": ["sleep", str(max(1, int(spec.lifetime_s)))],
        "entrypoint": [],
        "user": f"{base.keeper}:{base.keeper}",
        "working_dir": "/",
        "hostname": "sandbox",
        "labels": {**spec.labels, LABEL: base.name},
        "auto_remove": True,
        "network_mode": "none",
        # Else the engine would copy the host's name servers and domains.
        "dns": ["127.0.0.1"],
        "dns_search": ["."],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", f"seccomp={profile().read_text(encoding='utf-8')}"],
        "read_only": True,
        "tmpfs": _tmpfs(spec, base, uid),
        "mounts": [Mount(target="/etc/passwd", source=str(passwd), type="bind", read_only=True)],
        "volumes": {str(mount.source): {"bind": mount.target, "mode": "ro"} for mount in spec.mounts},
        "mem_limit": memory,
        "memswap_limit": memory,
        "pids_limit": spec.pids + _OWN_PIDS,
        "nano_cpus": int(spec.cpus * 1e9),
        "ipc_mode": "none",
        "init": True,
        "ulimits": [
            Ulimit(name="nofile", soft=_OPEN_FILES, hard=_OPEN_FILES),
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="sigpending", soft=users.SIGNALS, hard=users.SIGNALS),
            Ulimit(name="msgqueue", soft=users.QUEUE_BYTES, hard=users.QUEUE_BYTES),
        ],
        "log_config": LogConfig(type="none"),
    }


def _tmpfs(spec: SandboxSpec, base: ContainerBase, uid: int) -> dict[str, str]:
    room = {target: spec.disk_mb * _MIB * share // sum(SHARES.values()) for target, share in SHARES.items()}
    room |= dict.fromkeys(spec.filled, (base.copied_mb + spec.disk_mb) * _MIB)
    return {target: _options(size, uid, base.group) for target, size in room.items()}


def _options(size: int, uid: int, gid: int) -> str:
    bound = f"size={size},nr_inodes={max(64, size // _BYTES_PER_FILE)}"
    return f"rw,exec,nosuid,nodev,{bound},mode=0755,uid={uid},gid={gid}"


def start(connection: EngineConnection, ident: str, spec: SandboxSpec, base: ContainerBase, uid: int) -> None:
    """Start a container that ``create`` made."""
    connection.client.api.start(ident)
    if connection.facts.kind is EngineKind.PODMAN:
        podman.give_folders(connection.client, ident, _tmpfs(spec, base, uid), uid, base.group)


def find_base(client: "DockerClient", reference: str) -> ContainerBase:
    """Return the base for an image that the engine has.

    Raises:
        Infrastructure: the engine does not have it.
    """
    found = find_image(client, reference)
    if found is None:
        raise Infrastructure(f"the engine has no image {reference}: pull or build it, then try again")
    config = found["Config"]
    copied_mb = int((config.get("Labels") or {}).get(COPIED_MB, "0"))
    variables = dict(variable.split("=", 1) for variable in config.get("Env") or ())
    path = tuple(filter(None, variables.get("PATH", "").split(":")))
    # Use the id: a name may refer to another image at any time.
    return ContainerBase(found["Id"], reference, recipes.load(_OWN_IMAGE).user, copied_mb, path)
