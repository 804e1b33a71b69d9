"""The files of an agent's own image, shown beside the files of another image (``runtime_tree``).

In Docker they are a volume, filled once for each image: engines before 28 cannot mount an image, and an image derived
from each task's image would hold them once for every task. For bubblewrap they are a folder of the user's cache.
"""

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgm.errors import Infrastructure
from dgm.paths import cache_folder
from dgm.sandboxes.container import find_path
from dgm.sandboxes.engine_client import (
    EngineConnection,
    convert_engine_errors,
    find_image,
    lock_image,
    remove_container,
)
from dgm.sandboxes.filled_volumes import collect_volumes, ensure_filled
from dgm.sandboxes.preparing import Preparation
from dgm.sandboxes.runtime_tree import DEFAULT_PATH, FOLDER, RuntimeTree, drop_top
from dgm.sandboxes.shown_volumes import fill_volume

if TYPE_CHECKING:
    from docker import DockerClient

PLACES = "dgm.places"
"""Label of an image: folders that its programs look for by their absolute paths, with spaces between.

They are shown at the same paths, where the sandbox's own image has none.
"""
_KIND = "dgm.runtime"
"""Label of a volume: the image whose files it holds."""
_FORM = "1"
"""Form of the tree; another one makes volumes and folders anew."""
_UNPACK_S = 900


class RuntimeStore:
    """The volumes of one engine with the files of agents' own images."""

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection
        self._client = connection.client
        self._has: dict[tuple[str, str], bool] = {}
        """Image and folder → whether it has it."""

    def ensure_volumes(self, image: str, beside: str) -> Mapping[str, str]:
        """Return folder in the sandbox → volume with files of an image; fill those that there are not.

        Args:
            image: the agent's, by a name or id that never gets other contents.
            beside: the sandbox's own image, likewise.

        Raises:
            Infrastructure: the engine has no such image.
        """
        found = find_image(self._client, image)
        if found is None:
            raise Infrastructure(f"the engine has no image {image}: build it, then try again")
        places = str((found["Config"].get("Labels") or {}).get(PLACES, "")).split()
        volumes = {FOLDER: self._ensure_volume(image, found)}
        for place in places:
            if not self._has_folder(beside, place) and self._has_folder(image, place):
                volumes[place] = self._ensure_place(image, place)
        return volumes

    def _ensure_volume(self, image: str, found: Mapping[str, Any]) -> str:
        def fill(volume: str) -> None:
            told = _tell()
            with _export(self._client, image, find_path(found)) as chunks:
                fill_volume(self._connection, image, volume, chunks)
            told.say(f"done in {told.seconds:.0f} s")

        return ensure_filled(self._client, f"dgm-runtime-{_name(image)}", _KIND, image, fill)

    def _ensure_place(self, image: str, place: str) -> str:
        def fill(volume: str) -> None:
            with _open_container(self._client, image) as ident:
                chunks, _ = self._client.api.get_archive(ident, place)
                fill_volume(self._connection, image, volume, drop_top(chunks))

        return ensure_filled(self._client, f"dgm-runtime-{_name(f'{image} {place}')}", _KIND, image, fill)

    def _has_folder(self, image: str, folder: str) -> bool:
        import docker

        key = (image, folder)
        if key not in self._has:
            with _open_container(self._client, image) as ident:
                try:
                    chunks, said = self._client.api.get_archive(ident, folder)
                except docker.errors.NotFound:
                    self._has[key] = False
                else:
                    chunks.close()
                    self._has[key] = bool(said)
        return self._has[key]


def ensure_runtime_folder(client: "DockerClient", image: str) -> Path:
    """Return a folder of this machine with the files of an image of a Docker engine; make it if there is none.

    Raises:
        Infrastructure: the engine failed, or the files cannot be unpacked.
    """
    with convert_engine_errors("read an agent's image"):
        found = find_image(client, image)
        if found is None:
            raise Infrastructure(f"the engine has no image {image}: build it, then try again")
        ident = str(found["Id"])
        folder = cache_folder("runtimes") / _name(ident)
        with lock_image(f"runtime-{folder.name}"):
            if not folder.exists():
                told = _tell()
                with _export(client, ident, find_path(found)) as chunks:
                    _unpack(chunks, folder)
                told.say(f"done in {told.seconds:.0f} s")
    return folder


def collect(client: "DockerClient") -> None:
    """Remove the volumes of images that are gone."""
    collect_volumes(client, _KIND, lambda image: find_image(client, image) is not None)


def _tell() -> Preparation:
    told = Preparation("the agent's image")
    told.say("reading its files, once")
    return told


def _name(image: str) -> str:
    return hashlib.sha256(f"{_FORM} {image}".encode()).hexdigest()[:32]


@contextlib.contextmanager
def _export(client: "DockerClient", image: str, path: tuple[str, ...]) -> Iterator[Iterator[bytes]]:
    with _open_container(client, image) as ident:
        tree = RuntimeTree(tuple(dict.fromkeys((*path, *DEFAULT_PATH))))
        yield tree.rewrite(client.api.export(ident))


@contextlib.contextmanager
def _open_container(client: "DockerClient", image: str) -> Iterator[str]:
    """Make a container that is never started, to read an image's files."""
    made = client.api.create_container(image, command=["true"], use_config_proxy=False, network_disabled=True)
    ident = str(made["Id"])
    try:
        yield ident
    finally:
        remove_container(client, ident)


def _unpack(chunks: Iterator[bytes], folder: Path) -> None:
    """Unpack a tar stream; GNU's tar follows no link on the way and leaves no folder."""
    draft = Path(tempfile.mkdtemp(prefix="draft-", dir=folder.parent))
    try:
        command = ["tar", "-x", "--no-same-owner", "-p", "-f", "-", "-C", str(draft)]
        with tempfile.TemporaryFile() as spool:
            for chunk in chunks:
                spool.write(chunk)
            spool.seek(0)
            done = subprocess.run(command, stdin=spool, capture_output=True, timeout=_UNPACK_S, check=False)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().split("\n", 1)[0]
            raise Infrastructure(f"cannot unpack the files of an agent's image: {said[:300]}")
        draft.chmod(0o755)
        draft.replace(folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
