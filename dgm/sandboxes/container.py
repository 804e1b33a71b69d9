"""The creation of a sandbox's container: every flag that confines it, in one place.

Each has a user id of its own, taken by the container's name, which the engine gives only once.
"""

import io
import platform
import posixpath
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dgm.errors import Infrastructure, UserError
from dgm.protocols import SandboxSpec
from dgm.sandboxes import relay, users
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.engine_client import EngineConnection, find_image
from dgm.sandboxes.owners import label_owner
from dgm.sandboxes.prepared import COPIED_MB
from dgm.sandboxes.seccomp import profile
from dgm.sandboxes.volumes import ShownFolder

if TYPE_CHECKING:
    from docker import DockerClient

SHARES = {"/work": 8, "/tmp": 4, "/agent": 2, "/job": 2}
"""Shares of ``disk_mb``: the engine has no bound over several folders, so each has its own."""
LABEL = "dgm.sandbox"
IN_ENGINE = "docker:"
"""Prefix of an image in the engine, in a place where a recipe's name may stand."""
_PATH = ("/opt/dgm/bin", "/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
"""Search path; an image with a repository keeps the commands of the repository's environment in the first folder."""
_OWN_PIDS = 7
"""Processes of the container's init, sleeper and relay, and of what bounds and feeds a program."""
_SOCKET_FOLDER_BYTES = 1 << 16
_MIB = 1024 * 1024
_BYTES_PER_FILE = 4096
_OPEN_FILES = 1024
_REGISTRIES = ("docker.io/", "localhost/")
"""Prefix of Podman's names for images that were made here."""
_SECCOMP = "seccomp="
_UNKNOWN_TO_PODMAN = ("uid=", "gid=", "nr_inodes=")
"""Options of a tmpfs that Podman refuses."""
_PROCESSES_OF_USER = 4096
"""Limit on the processes of one user of the machine; Podman's own default fails where root may not raise limits."""
_NAME_TAKEN = "already in use"


@dataclass(frozen=True, slots=True)
class ContainerBase:
    """The base of a container."""

    image: str
    """Id of the image, since a name may refer to another image at any time."""
    name: str
    """Image name for people."""
    group: int
    """Gid of everything that an agent runs."""
    copied_mb: int = 0
    """MiB for a copy of one of its folders, if the image has the label."""
    path: tuple[str, ...] = ()
    """Additional folders with commands."""
    volumes: tuple[str, ...] = ()
    """Folders for which the image declares volumes."""

    @property
    def keeper(self) -> int:
        """The uid of the container's sleeper, its relay and what it shows.

        It is not the sandbox's user, who could end the sandbox by killing it.
        """
        return self.group + 1

    @property
    def search_path(self) -> str:
        """The variable ``PATH`` of its programs."""
        return ":".join(dict.fromkeys((*_PATH, *self.path)))


@dataclass(frozen=True, slots=True)
class Shown:
    """Folders and images that a container shows read-only."""

    folders: Sequence[ShownFolder] = ()
    """Unpacked in the container's own memory."""
    volumes: Mapping[str, str] = field(default_factory=dict)
    """Folder in the container → volume of the engine."""


def create(
    connection: EngineConnection, spec: SandboxSpec, base: ContainerBase, shown: Shown
) -> tuple[str, int]:
    """Create a container, and return its id and the uid of its programs, which no other one has.

    Raises:
        UserError: the engine cannot confine it from here.
        Infrastructure: all user ids are taken.
    """
    import docker

    client = connection.client
    for uid in users.in_random_order(users.DOCKER):
        try:
            arguments = creation_arguments(spec, base, uid, shown)
            if connection.facts.is_podman:
                arguments = adapt_to_podman(arguments, connection.address)
            made = client.containers.create(**arguments)
        except docker.errors.APIError as error:
            if _NAME_TAKEN in str(error.explanation):
                continue
            raise
        return str(made.id), uid
    raise Infrastructure(f"all {len(users.DOCKER)} user ids of sandboxes are taken: end some of them")


def creation_arguments(spec: SandboxSpec, base: ContainerBase, uid: int, shown: Shown) -> dict[str, Any]:
    """Return the arguments of ``containers.create`` for programs of the user ``uid``.

    Nothing of the host is mounted: the engine may see other files.

    The main process sleeps for the lifetime, and the engine removes the container at its end: a sandbox whose owner
    died goes away by itself.
    """
    from docker.types import LogConfig, Mount, Ulimit

    # The contents of a tmpfs count as memory; the agent is not charged for files that it is given.
    given = base.copied_mb * len(spec.filled) * _MIB + sum(folder.size_bytes for folder in shown.folders)
    relay_mb = relay.MEMORY_MB if spec.socket else 0
    memory = f"{(spec.memory_mb + relay_mb) * 1024 + -(-given // 1024)}k"
    return {
        "name": f"dgm-sandbox-{uid}",
        "image": base.image,
        # Else the library would put the proxies of its user's configuration, passwords included, into the environment.
        "use_config_proxy": False,
        "command": ["sleep", str(max(1, int(spec.lifetime_s)))],
        "entrypoint": [],
        "user": f"{base.keeper}:{base.keeper}",
        "working_dir": "/",
        "hostname": "localhost",
        "labels": {**spec.labels, **label_owner(), LABEL: base.name},
        "auto_remove": True,
        "network_mode": "none",
        # Else the engine would copy the host's name servers and domains.
        "dns": ["127.0.0.1"],
        "dns_search": ["."],
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges", f"seccomp={profile().read_text(encoding='utf-8')}"],
        "read_only": True,
        "tmpfs": _tmpfs(spec, base, uid) | _kept_tmpfs(spec, base, shown.folders),
        "mounts": [
            Mount(target=target, source=volume, type="volume", read_only=True)
            for target, volume in shown.volumes.items()
        ],
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
    # An engine would put volumes without bounds into these folders.
    room |= {
        volume: room[folder] for folder in room for volume in base.volumes if volume.startswith(f"{folder}/")
    }
    return {
        target: _options(size, max(64, size // _BYTES_PER_FILE), uid, base.group)
        for target, size in room.items()
    }


def _kept_tmpfs(spec: SandboxSpec, base: ContainerBase, shown: Sequence[ShownFolder]) -> dict[str, str]:
    """Return the folders that only the keeper can write."""
    rooms = [(folder.target, folder.size_bytes, folder.entries) for folder in shown]
    if spec.socket:
        rooms.append((posixpath.dirname(spec.socket.target), _SOCKET_FOLDER_BYTES, 8))
    return {target: _options(size, entries, base.keeper, base.keeper) for target, size, entries in rooms}


def _options(size: int, entries: int, uid: int, gid: int) -> str:
    bound = f"size={size},nr_inodes={entries}"
    return f"rw,exec,nosuid,nodev,{bound},mode=0755,uid={uid},gid={gid}"


def owners(
    spec: SandboxSpec, base: ContainerBase, uid: int, shown: Sequence[ShownFolder]
) -> dict[str, tuple[int, int]]:
    """Return the uid and gid of each folder that can be written in a container."""
    kept = dict.fromkeys(_kept_tmpfs(spec, base, shown), (base.keeper, base.keeper))
    return dict.fromkeys(_tmpfs(spec, base, uid), (uid, base.group)) | kept


def start(connection: EngineConnection, ident: str, owned: Mapping[str, tuple[int, int]]) -> None:
    """Start a container that ``create`` made, with the ``owners`` of its folders."""
    connection.client.api.start(ident)
    if connection.facts.is_podman:
        _give_folders(connection.client, ident, owned)


def find_base(client: "DockerClient", reference: str, name: str, group: int) -> ContainerBase:
    """Return the base for a prepared image.

    Args:
        client: the engine.
        reference: the image.
        name: of what it was prepared from, for people.
        group: gid of agents.
    """
    image = find_image(client, reference)
    if image is None:
        raise Infrastructure(f"the engine has no image {reference}: pull or build it, then try again")
    config = image["Config"]
    label = (config.get("Labels") or {}).get(COPIED_MB, "")
    copied_mb = int(label) if label.isdecimal() else 0
    search = next((each[5:] for each in config.get("Env") or () if each.startswith("PATH=")), "")
    path = tuple(filter(None, search.split(":")))
    volumes = tuple(posixpath.normpath(target) for target in config.get("Volumes") or ())
    return ContainerBase(image["Id"], name, group, copied_mb, path, volumes)


def adapt_to_podman(arguments: Mapping[str, Any], address: EngineAddress) -> dict[str, Any]:
    """Return the arguments of ``containers.create`` in the form that Podman takes.

    Seen with Podman 4.3: it reads a seccomp profile from a file of its own machine (containers/podman#27710). It knows
    fewer options of a tmpfs: ``start`` does what they would.

    Raises:
        UserError: it is on another machine, where its own profile would hold.
    """
    from docker.types import Ulimit

    if not address.socket or platform.system() != "Linux":
        raise UserError(
            f"Podman at {address} would use the seccomp profile of its own machine, which allows more than dgm does: "
            "use Podman on this machine by its socket, or Docker there"
        )
    security = [option for option in arguments["security_opt"] if not option.startswith(_SECCOMP)]
    processes = Ulimit(name="nproc", soft=_PROCESSES_OF_USER, hard=_PROCESSES_OF_USER)
    return {
        **arguments,
        "security_opt": [*security, f"{_SECCOMP}{profile()}"],
        "tmpfs": {
            target: ",".join(part for part in options.split(",") if not part.startswith(_UNKNOWN_TO_PODMAN))
            for target, options in arguments["tmpfs"].items()
        },
        "ulimits": [*arguments["ulimits"], processes],
    }


def _give_folders(client: "DockerClient", ident: str, owned: Mapping[str, tuple[int, int]]) -> None:
    """Give folders of a running container, which are tmpfs, to their owners (uid and gid)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for folder, (uid, gid) in owned.items():
            member = tarfile.TarInfo(folder.strip("/"))
            member.type, member.mode, member.uid, member.gid = tarfile.DIRTYPE, 0o755, uid, gid
            archive.addfile(member)
    client.api.put_archive(ident, "/", stream.getvalue())


def strip_registry(tag: str) -> str:
    """Return a tag without the registry that Podman puts before names of images that were made here."""
    for registry in _REGISTRIES:
        tag = tag.removeprefix(registry)
    return tag
