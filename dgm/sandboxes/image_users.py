"""The users of an image, and among them those of sandboxes: a volume that stands in for the image's ``/etc``.

An image need not know its sandboxes' users, but many programs ask for the name or the home of their own. Nothing of the
host can be mounted for that: the engine may see other files than dgm does.
"""

import hashlib
import io
import tarfile
from typing import TYPE_CHECKING

from dgm.errors import Infrastructure
from dgm.sandboxes import podman
from dgm.sandboxes.engine_client import EngineConnection, find_image, remove_container
from dgm.sandboxes.filled_volumes import collect_volumes, ensure_filled
from dgm.sandboxes.users import DOCKER, list_users

if TYPE_CHECKING:
    from docker import DockerClient

_ETC, _PASSWD = "/etc", "passwd"
_MOST_BYTES = 1 << 20
_NOBODY, _PROCESSES, _MEMORY = "65534:65534", 16, "64m"
_LIMIT = 1024
"""Limit on open files and on processes of the user: Podman's own defaults fail where root may not raise limits."""
_LABEL = "dgm.users"
"""Label of a volume: the image whose ``/etc`` it is."""


def ensure_etc(connection: EngineConnection, image: str, gid: int) -> str:
    """Return the volume for an image, by a name or id that never gets other contents; make it once.

    Raises:
        Infrastructure: the image's own list of users is too large to be true.
    """
    which = f"{image} {gid} {DOCKER.start} {DOCKER.stop}"
    name = f"dgm-etc-{hashlib.sha256(which.encode()).hexdigest()[:32]}"
    return ensure_filled(
        connection.client, name, _LABEL, image, lambda made: _fill(connection, image, gid, made)
    )


def collect(client: "DockerClient") -> None:
    """Remove the volumes of images that are gone."""
    collect_volumes(client, _LABEL, lambda image: find_image(client, image) is not None)


def _fill(connection: EngineConnection, image: str, gid: int, volume: str) -> None:
    """Fill a volume with the image's own files, through a container that mounts it, and with the list of users."""
    from docker.types import Mount, Ulimit

    client = connection.client
    made = client.api.create_container(
        image,
        command=["true"],
        entrypoint=[],
        use_config_proxy=False,
        user=_NOBODY,
        host_config=client.api.create_host_config(
            network_mode="none",
            mounts=[Mount(target=_ETC, source=volume, type="volume")],
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            pids_limit=_PROCESSES,
            mem_limit=_MEMORY,
            ulimits=[Ulimit(name=name, soft=_LIMIT, hard=_LIMIT) for name in ("nofile", "nproc")],
        ),
    )
    ident = str(made["Id"])
    try:
        if connection.facts.is_podman:
            podman.copy_into_volumes(client, ident)
        text = list_users(_read_passwd(client, ident, image), DOCKER, gid)
        client.api.put_archive(ident, _ETC, _pack(text.encode("utf-8", "surrogateescape")))
    finally:
        remove_container(client, ident)


def _read_passwd(client: "DockerClient", ident: str, image: str) -> str:
    """Return the image's own list of users; empty if it has none."""
    import docker

    try:
        chunks, _ = client.api.get_archive(ident, f"{_ETC}/{_PASSWD}")
    except docker.errors.NotFound:
        return ""
    stream = bytearray()
    for chunk in chunks:
        stream += chunk
        if len(stream) > _MOST_BYTES:
            raise Infrastructure(f"{_ETC}/{_PASSWD} of the image {image} has more than {_MOST_BYTES:,} bytes")
    with tarfile.open(fileobj=io.BytesIO(bytes(stream)), mode="r:") as archive:
        member = archive.next()
        content = archive.extractfile(member) if member is not None and member.isreg() else None
        return content.read().decode("utf-8", "surrogateescape") if content else ""


def _pack(passwd: bytes) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        header = tarfile.TarInfo(_PASSWD)
        header.size, header.mode = len(passwd), 0o644
        archive.addfile(header, io.BytesIO(passwd))
    return stream.getvalue()
