"""Differences of Podman from Docker behind the same protocol, and the answer to each.

Seen with Podman 4.3; the report of each difference is named. Nothing here applies to Docker.
"""

import io
import platform
import tarfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dgm.errors import UserError
from dgm.protocols import Sandbox
from dgm.sandboxes.engine_address import EngineAddress
from dgm.sandboxes.refusals import find_allowed, name_calls
from dgm.sandboxes.seccomp import profile

if TYPE_CHECKING:
    from docker import DockerClient

_REGISTRIES = ("docker.io/", "localhost/")
_SECCOMP = "seccomp="
_UNKNOWN_OPTIONS = ("uid=", "gid=", "nr_inodes=")
"""Options of a tmpfs that Podman refuses."""
_PROCESSES_OF_USER = 4096
"""Limit on the processes of one user of the machine; Podman's own default fails where root may not raise limits."""


def reads_profile(address: EngineAddress) -> bool:
    """Return whether Podman reads the profile that dgm ships: it opens the file on its own machine."""
    return bool(address.socket) and platform.system() == "Linux"


async def check_own_profile(address: EngineAddress, sandbox: Sandbox, machine: str) -> None:
    """Make sure that Podman's own seccomp profile refuses at least what dgm's does.

    Args:
        address: of a Podman on another machine.
        sandbox: of it, with Python.
        machine: the sandbox's architecture.

    Raises:
        UserError: it allows more.
        Infrastructure: that could not be tried.
    """
    if allowed := await find_allowed(sandbox, machine):
        raise UserError(
            f"Podman at {address}: its own seccomp profile allows what dgm refuses ({name_calls(allowed)}): copy "
            f"{profile()} to its machine, name the copy there by seccomp_profile below [containers] in "
            "containers.conf, and start its service again"
        )


def adapt_creation(arguments: Mapping[str, Any], address: EngineAddress) -> dict[str, Any]:
    """Return the arguments of ``containers.create`` in the form that Podman takes.

    It reads a seccomp profile from a file of its own machine (containers/podman#27710). On another machine its own
    profile holds, which ``check_own_profile`` examines. It knows fewer options of a tmpfs: ``give_folders`` does what
    they would.
    """
    from docker.types import Ulimit

    security = [each for each in arguments["security_opt"] if not each.startswith(_SECCOMP)]
    if reads_profile(address):
        security.append(f"{_SECCOMP}{profile()}")
    tmpfs = {target: _known_options(options) for target, options in arguments["tmpfs"].items()}
    processes = Ulimit(name="nproc", soft=_PROCESSES_OF_USER, hard=_PROCESSES_OF_USER)
    return {
        **arguments,
        "security_opt": security,
        "tmpfs": tmpfs,
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


def copy_into_volumes(client: "DockerClient", ident: str) -> None:
    """Start a container, whose command ends at once: Podman copies the image's files into empty volumes only then.

    It mounts files of its own below /etc, which have to be in a volume that is mounted there read-only.
    """
    client.api.start(ident)
    client.api.wait(ident)


def name_import(client: "DockerClient", tag: str) -> None:
    """Give an imported image its tag, which Podman ignores in favour of ``latest`` (containers/podman#18597)."""
    name, _, version = tag.rpartition(":")
    client.api.tag(f"{name}:latest", name, version)
    client.api.remove_image(f"{name}:latest", noprune=True)


def strip_registry(tag: str) -> str:
    """Return a tag without the registry that Podman puts before names of images that were made here."""
    for registry in _REGISTRIES:
        tag = tag.removeprefix(registry)
    return tag


def _known_options(options: str) -> str:
    return ",".join(each for each in options.split(",") if not each.startswith(_UNKNOWN_OPTIONS))
