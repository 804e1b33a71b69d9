"""Read-only content for an engine with other files: packed folders of the host, and volumes that are filled once.

An agent can neither change what it is shown nor put something in its place: another user owns it. Volumes hold folders
whose contents never change, such as an agent's packages, and the files of an agent's own image, which are shown beside
those of a task's image. Images would hold them once for each task.
"""

import contextlib
import hashlib
import io
import logging
import secrets
import stat
import tarfile
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import files
from pathlib import Path
from typing import IO, TYPE_CHECKING

from dgm.errors import Infrastructure, UserError
from dgm.protocols import Mount
from dgm.sandboxes.engine_client import (
    UNUSED_S,
    EngineConnection,
    find_image,
    find_last_use,
    helper_container,
    lock_image,
    note_use,
    slow_api,
)
from dgm.sandboxes.preparing import Preparation

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)

RUNTIME = "/opt/dgm-runtime"
"""Folder of a sandbox with the files of an agent's own image."""
PLACES = "dgm.places"
"""Label of an image: folders that its programs look for by their absolute paths, with spaces between.

They are shown at the same paths, where the sandbox's own image has none.
"""
_LABEL = "dgm.volume"
"""Label of a volume: what it holds."""
_FILLED = "dgm.volume.filled"
"""Label of an empty volume: the volume with the contents that its own name stands for."""
_RUNTIME_FORM = 1
"""Raised when ``runtime_inside.sh`` makes other files of the same image."""
_HERE = "/.dgm-volume"
"""Place of a volume while it is filled."""
_TIMEOUT_S = 900
_PAGE_BYTES = 4096
_SPARE = 64
"""Entries for which there is room beyond those that are packed."""


@dataclass(frozen=True, slots=True)
class ShownFolder:
    """One packed folder."""

    target: str
    """Absolute folder in the sandbox."""
    stream: bytes
    """Its contents as a tar stream."""
    size_bytes: int
    """Bytes that it takes in memory."""
    entries: int
    """Files, folders and links that it may have."""


def pack_folders(mounts: Sequence[Mount]) -> list[ShownFolder]:
    """Pack host folders, with modes that let everybody read; what is no file, folder or link is left out.

    Raises:
        Infrastructure: one cannot be read.
    """
    packed = []
    for mount in mounts:
        stream = io.BytesIO()
        sizes = pack_folder(mount.source, stream)
        entries = len(sizes) + _SPARE
        pages = sum(-(-size // _PAGE_BYTES) for size in sizes) + entries
        packed.append(ShownFolder(mount.target, stream.getvalue(), pages * _PAGE_BYTES, entries))
    return packed


def pack_folder(folder: Path, stream: IO[bytes]) -> Sequence[int]:
    """Write the contents of a folder as a tar stream, as ``pack_folders`` does; return the bytes of each entry.

    Raises:
        Infrastructure: it cannot be read.
    """
    sizes: list[int] = []

    def admit(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        # Else a second name of a file would be packed as a hard link.
        archive.inodes.clear()  # type: ignore[attr-defined]
        if not (member.isreg() or member.isdir() or member.issym()):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        member.mtime = int(member.mtime)
        member.mode = 0o755 if member.isdir() or member.mode & stat.S_IXUSR else 0o644
        sizes.append(member.size)
        return member

    try:
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT, encoding="utf-8") as archive:
            for path in sorted(folder.iterdir()):
                archive.add(path, path.name, filter=admit)
    except OSError as error:
        raise Infrastructure(f"cannot read what a sandbox is shown: {error}") from error
    return sizes


class VolumeStore:
    """The volumes of one engine."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection
        self._client = connection.client
        self._has: dict[tuple[str, str], bool] = {}
        """Image and folder → whether it has it."""

    def ensure_folder(self, image: str, mount: Mount) -> str:
        """Return the volume with a folder that has a digest.

        Args:
            image: any image of the engine; its programs are not run.
            mount: of the folder.
        """

        def fill(volume: str) -> None:
            Preparation("sandboxes").say(
                f"sending {mount.source.name} to the engine, once, for {mount.target}"
            )
            with tempfile.TemporaryFile() as stream, self._container(image, {_HERE: volume}) as ident:
                pack_folder(mount.source, stream)
                stream.seek(0)
                if self._connection.facts.is_podman:
                    # It knows a container's volumes only once that has run.
                    self._client.api.start(ident)
                    self._client.api.wait(ident)
                chunks = iter(lambda: stream.read(1 << 20), b"")
                slow_api(self._client).put_archive(ident, _HERE, chunks)

        return self._ensure(f"dgm-shown-{_digest(mount.digest)}", mount.source.name, fill)

    def ensure_runtime(self, image: str, beside: str) -> Mapping[str, str]:
        """Return folder in the sandbox → volume with the files of an agent's own image.

        Args:
            image: the agent's, by an id.
            beside: the sandbox's own image, likewise.

        Raises:
            UserError: the image is not made for that; the message says why.
            Infrastructure: the engine has no such image.
        """
        config = find_image(self._client, image)
        if config is None:
            raise Infrastructure(f"the engine has no image {image}: build it, then try again")
        script = files("dgm.sandboxes").joinpath("runtime_inside.sh").read_text(encoding="utf-8")

        def fill(volume: str) -> None:
            progress = Preparation("the agent's image")
            progress.say("copying its files, once")
            self._run(image, {_HERE: volume}, ["-c", script, "runtime", _HERE, RUNTIME])
            progress.say(f"done in {progress.seconds:.0f} s")

        volumes = {RUNTIME: self._ensure(f"dgm-runtime-{_digest(f'{_RUNTIME_FORM} {image}')}", image, fill)}
        for folder in str((config["Config"].get("Labels") or {}).get(PLACES, "")).split():
            if not self._has_folder(beside, folder) and self._has_folder(image, folder):
                volumes[folder] = self.ensure_part(image, folder)
        return volumes

    def ensure_part(self, image: str, folder: str) -> str:
        """Return the volume with one folder of an image, by the image's id."""

        def fill(volume: str) -> None:
            # An engine itself fills an empty volume with what the image has at its place.
            self._run(image, {folder: volume}, ["-c", ":"])

        return self._ensure(f"dgm-runtime-{_digest(f'{image} {folder}')}", image, fill)

    def _run(self, image: str, volumes: Mapping[str, str], words: Sequence[str]) -> None:
        """Run the image's shell as root with volumes."""
        import docker

        problem = f"the files of the image {image} cannot be shown in a sandbox"
        with self._container(image, volumes, ["/bin/sh", *words]) as ident:
            try:
                self._client.api.start(ident)
            except docker.errors.APIError as error:
                raise UserError(f"{problem}: {error.explanation}") from error
            if code := self._client.api.wait(ident, timeout=_TIMEOUT_S)["StatusCode"]:
                output = self._client.api.logs(ident, tail=1).decode("utf-8", "replace").strip()
                raise UserError(f"{problem}: {output[:300] or code}")

    def _ensure(self, name: str, holds: str, fill: Callable[[str], None]) -> str:
        """Return the volume with the contents that ``name`` stands for; fill one if there is none.

        A volume is never filled again: sandboxes may show it.
        """
        note_use(name)
        if filled := self._find_filled(name):
            return filled
        with lock_image(name):
            if filled := self._find_filled(name):
                return filled
            filled = f"{name}-{secrets.token_hex(4)}"
            self._client.volumes.create(filled, labels={_LABEL: holds})
            fill(filled)
            remove_volume(self._client, name)
            self._client.volumes.create(name, labels={_LABEL: holds, _FILLED: filled})
        return filled

    def _find_filled(self, name: str) -> str:
        """Return the volume with the contents that a name stands for; empty if there is none."""
        import docker

        try:
            filled = str((self._client.volumes.get(name).attrs["Labels"] or {}).get(_FILLED, ""))
            return str(self._client.volumes.get(filled).name) if filled else ""
        except docker.errors.NotFound:
            return ""

    def _has_folder(self, image: str, folder: str) -> bool:
        import docker

        key = (image, folder)
        if key not in self._has:
            with self._container(image, {}) as ident:
                try:
                    chunks, _ = self._client.api.get_archive(ident, folder)
                    chunks.close()
                except docker.errors.NotFound:
                    self._has[key] = False
                else:
                    self._has[key] = True
        return self._has[key]

    def _container(
        self, image: str, volumes: Mapping[str, str], command: Sequence[str] = ("true",)
    ) -> AbstractContextManager[str]:
        from docker.types import Mount as VolumeMount

        mounts = [VolumeMount(target, volume, type="volume") for target, volume in volumes.items()]
        return helper_container(self._client, image, "2g", command, mounts=mounts)


def collect(client: "DockerClient") -> None:
    """Remove the volumes that nobody used for a week."""
    oldest = time.time() - UNUSED_S
    volumes = client.volumes.list(filters={"label": _LABEL})
    names = {(volume.attrs["Labels"] or {}).get(_FILLED): volume.name for volume in volumes}
    for volume in volumes:
        made = datetime.fromisoformat(volume.attrs["CreatedAt"]).timestamp()
        if max(made, find_last_use(names.get(volume.name, volume.name))) < oldest:
            remove_volume(client, str(volume.name))


def remove_volume(client: "DockerClient", name: str) -> None:
    """Remove a volume, unless a container uses it or it is gone."""
    import docker

    with contextlib.suppress(docker.errors.NotFound):
        try:
            client.volumes.get(name).remove(force=True)
        except docker.errors.APIError as error:
            log.info("keeping the volume %s: %s", name, error.explanation)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
