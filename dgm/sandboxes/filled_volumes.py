"""Volumes of an engine that are filled once and then only read, by any number of sandboxes.

A volume is filled under a name of its own, and then named by a second, empty one, which the engine makes only once. So
no sandbox gets a volume that is half filled, whoever else fills one, or died of it.
"""

import contextlib
import logging
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING

from dgm.sandboxes.engine_client import lock_image

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)


def ensure_filled(
    client: "DockerClient", name: str, kind: str, holds: str, fill: Callable[[str], None]
) -> str:
    """Return the filled volume for a name; make it once.

    Args:
        client: of the engine.
        name: stands for the contents.
        kind: label of volumes of this kind.
        holds: value of the label, which says what the volume holds.
        fill: fills the new volume whose name it gets.
    """
    filled = find_filled(client, name, kind)
    if filled:
        return filled
    with lock_image(name):
        filled = find_filled(client, name, kind)
        if filled:
            return filled
        made = f"{name}-{secrets.token_hex(4)}"
        client.volumes.create(made, labels={kind: holds})
        try:
            fill(made)
        except BaseException:
            remove_volume(client, made)
            raise
        # The lock is this machine's; another one may have filled a volume meanwhile.
        client.volumes.create(name, labels={kind: holds, _naming(kind): made})
        return find_filled(client, name, kind) or made


def find_filled(client: "DockerClient", name: str, kind: str) -> str:
    """Return the filled volume that ``name`` names; empty if there is none, and nothing has that name then."""
    import docker

    try:
        named = client.volumes.get(name)
    except docker.errors.NotFound:
        return ""
    filled = str(named.attrs["Labels"][_naming(kind)])
    try:
        client.volumes.get(filled)
    except docker.errors.NotFound:
        named.remove(force=True)
        return ""
    return filled


def collect_volumes(client: "DockerClient", kind: str, is_wanted: Callable[[str], bool]) -> None:
    """Remove the volumes of a kind whose label's value is not wanted, and those that nobody finished filling."""
    volumes = {
        str(volume.name): volume.attrs["Labels"] for volume in client.volumes.list(filters={"label": kind})
    }
    finished = {labels[_naming(kind)] for labels in volumes.values() if _naming(kind) in labels}
    for name, labels in volumes.items():
        done = name in finished or _naming(kind) in labels
        if not (done and is_wanted(labels[kind])):
            remove_volume(client, name)


def remove_volume(client: "DockerClient", name: str) -> None:
    """Remove a volume, unless a container uses it or it is gone."""
    import docker

    with contextlib.suppress(docker.errors.NotFound):
        try:
            client.volumes.get(name).remove(force=True)
        except docker.errors.APIError as error:
            log.info("keeping the volume %s: %s", name, error.explanation)


def _naming(kind: str) -> str:
    """Return the label of a volume that only names the one that was filled."""
    return f"{kind}.filled"
