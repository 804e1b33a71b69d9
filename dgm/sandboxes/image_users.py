"""The users of an image, and among them those of sandboxes: a file that stands in for the image's ``/etc/passwd``.

An image need not know its sandboxes' users, but many programs ask for the name or the home of their own.
"""

import hashlib
import io
import os
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dgm.errors import Infrastructure
from dgm.paths import cache_folder
from dgm.sandboxes.engine_client import remove_container
from dgm.sandboxes.users import DOCKER, list_users

if TYPE_CHECKING:
    from docker import DockerClient

_PASSWD = "/etc/passwd"
_MOST_BYTES = 1 << 20


def passwd_file(client: "DockerClient", image: str, gid: int) -> Path:
    """Return the file for an image, by a name or id that never gets other contents; make it once.

    Raises:
        Infrastructure: the image's own file is too large to be true.
    """
    which = f"{image} {gid} {DOCKER.start} {DOCKER.stop}"
    file = cache_folder("users") / hashlib.sha256(which.encode()).hexdigest()[:32]
    if not file.exists():
        text = list_users(_read_passwd(client, image), DOCKER, gid)
        descriptor, draft = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as opened:
            opened.write(text)
        Path(draft).chmod(0o644)
        Path(draft).replace(file)
    return file


def _read_passwd(client: "DockerClient", image: str) -> str:
    """Return the image's own file, from a container that is never started; empty if it has none."""
    import docker

    made = client.api.create_container(
        image, command=["true"], entrypoint=[], network_disabled=True, use_config_proxy=False
    )
    try:
        chunks, _ = client.api.get_archive(made["Id"], _PASSWD)
        stream = bytearray()
        for chunk in chunks:
            stream += chunk
            if len(stream) > _MOST_BYTES:
                raise Infrastructure(f"{_PASSWD} of the image {image} has more than {_MOST_BYTES:,} bytes")
    except docker.errors.NotFound:
        return ""
    finally:
        remove_container(client, made["Id"])
    with tarfile.open(fileobj=io.BytesIO(bytes(stream)), mode="r:") as archive:
        member = archive.next()
        content = archive.extractfile(member) if member is not None and member.isreg() else None
        return content.read().decode("utf-8", "surrogateescape") if content else ""
