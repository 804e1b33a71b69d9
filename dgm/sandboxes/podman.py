"""Differences of Podman from Docker behind the same protocol, and the answer to each.

Seen with Podman 4.3; the report of each difference is named. Nothing here applies to Docker.
"""

import io
import platform
import tarfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dgm.errors import UserError
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.seccomp import profile

if TYPE_CHECKING:
    from docker import DockerClient

_REGISTRIES = ("docker.io/", "localhost/")
_SECCOMP = "seccomp="
_UNKNOWN_OPTIONS = ("uid=", "gid=", "nr_inodes=")
"""Options of a tmpfs that Podman refuses."""
_PROCESSES_OF_USER = 4096
"""Limit on the processes of one user of the machine; Podman's own default fails where root may not raise limits."""


def adapt_creation(arguments: Mapping[str, Any], address: EngineAddress) -> dict[str, Any]:
    """Return the arguments of ``containers.create`` in the form that Podman takes.

    It reads a seccomp profile from a file of its own machine (containers/podman#27710). It knows fewer options of a
    tmpfs: ``give_folders`` does what they would.

    Raises:
        UserError: it is on another machine, where its own profile would hold.
    """
    from docker.types import Ulimit

    if not address.socket or platform.system() != "Linux":
        raise UserError(
            f"Podman at {address} would use the seccomp profile of its own machine, which allows more than dgm does: "
            "use Podman on this machine by its socket, or Docker there"
        )
    security = [each for each in arguments["security_opt"] if not each.startswith(_SECCOMP)]
    processes = Ulimit(name="nproc", soft=_PROCESSES_OF_USER, hard=_PROCESSES_OF_USER)
    return {
        **arguments,
        "security_opt": [*security, f"{_SECCOMP}{profile()}"],
        "tmpfs": {target: _known_options(options) for target, options in arguments["tmpfs"].items()},
        "ulimits": [*arguments["ulimits"], processes],
    }


def give_folders(client: "DockerClient", ident: str, owned: Mapping[str, tuple[int, int]]) -> None:
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


def _known_options(options: str) -> str:
    return ",".join(each for each in options.split(",") if not each.startswith(_UNKNOWN_OPTIONS))
