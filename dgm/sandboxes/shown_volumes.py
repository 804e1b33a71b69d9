"""Host folders whose contents never change, in volumes of the engine: sent to it once for all sandboxes.

An agent's packages may have hundreds of megabytes. Sent to each sandbox, they would take seconds and memory each time.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dgm.paths import cache_folder
from dgm.protocols import Mount
from dgm.sandboxes import podman
from dgm.sandboxes.engine_client import EngineConnection, remove_container
from dgm.sandboxes.filled_volumes import collect_volumes, ensure_filled
from dgm.sandboxes.preparing import Preparation
from dgm.sandboxes.shown_folders import stream_folder

if TYPE_CHECKING:
    from docker import DockerClient

_KIND = "dgm.shown"
"""Label of a volume: the name of its folder in this user's cache."""
_HERE = "/shown"
"""Place of a volume while it is filled."""
_NOBODY, _PROCESSES, _MEMORY = "65534:65534", 16, "64m"


def ensure_volumes(connection: EngineConnection, image: str, mounts: Sequence[Mount]) -> Mapping[str, str]:
    """Return the volume for each folder in the sandbox; fill those that the engine does not have yet.

    Args:
        connection: to the engine.
        image: any image of the engine; its programs are not run.
        mounts: with a ``digest``.
    """
    return {mount.target: _ensure_volume(connection, image, mount) for mount in mounts}


def collect(client: "DockerClient") -> None:
    """Remove the volumes of folders that are gone from this user's cache."""
    cache = cache_folder("packages")
    collect_volumes(client, _KIND, lambda name: (cache / name).exists())


def _ensure_volume(connection: EngineConnection, image: str, mount: Mount) -> str:
    def fill(volume: str) -> None:
        Preparation("sandboxes").say(f"sending {mount.source.name} to the engine, once, for {mount.target}")
        fill_volume(connection, image, volume, stream_folder(mount.source))

    digest = hashlib.sha256(mount.digest.encode()).hexdigest()[:32]
    return ensure_filled(connection.client, f"dgm-shown-{digest}", _KIND, mount.source.name, fill)


def fill_volume(connection: EngineConnection, image: str, volume: str, stream: Iterable[bytes]) -> None:
    """Fill a new volume with a tar stream, through a container that mounts it and runs nothing of the image's."""
    from docker.types import Mount as EngineMount

    client = connection.client
    made = client.api.create_container(
        image,
        command=["true"],
        entrypoint=[],
        use_config_proxy=False,
        user=_NOBODY,
        host_config=client.api.create_host_config(
            network_mode="none",
            mounts=[EngineMount(target=_HERE, source=volume, type="volume", no_copy=True)],
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            pids_limit=_PROCESSES,
            mem_limit=_MEMORY,
        ),
    )
    ident = str(made["Id"])
    try:
        if connection.facts.is_podman:
            podman.copy_into_volumes(client, ident)
        client.api.put_archive(ident, _HERE, stream)
    finally:
        remove_container(client, ident)
