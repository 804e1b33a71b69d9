"""The engine's store of instance images: the present ones, those in a registry, and the removable ones.

Only images that were made or pulled here are ever removed. A note in the user's cache folder lists them, with the time
of their last use.
"""

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dgm.errors import Infrastructure
from dgm.paths import cache_folder
from dgm.sandboxes import images, prepared
from dgm.sandboxes.engine_client import convert_engine_errors, find_image

if TYPE_CHECKING:
    from docker import DockerClient

log = logging.getLogger(__name__)

ASK_AGAIN_S = 60.0
"""Seconds until a registry that offered nothing is asked again."""
Progress = Callable[[int, int], None]
"""Callback for a download: bytes received, and total bytes as far as known."""


@dataclass(frozen=True, slots=True)
class PreparedImage:
    """One prepared image, with its source image if that was pulled for it."""

    tag: str
    pulled: str
    """The pulled source image; empty if it is not ours to remove."""
    used: float
    """Time of the last use, in seconds since 1970."""


class InstanceStore:
    """The images for instances of one engine."""

    def __init__(self, client: "DockerClient", notes: Path | None = None) -> None:
        self._client = client
        self._notes = notes or cache_folder("instance-images")
        self._refused: dict[str, float] = {}

    def has(self, reference: str) -> bool:
        """Return whether the engine has an image of that name."""
        with convert_engine_errors(f"look for the image {reference}"):
            return find_image(self._client, reference) is not None

    def offered(self, reference: str) -> bool:
        """Return whether a registry answers for the image; one that did not is asked again after a minute."""
        if time.monotonic() - self._refused.get(reference, -ASK_AGAIN_S) < ASK_AGAIN_S:
            return False
        if images.is_offered(self._client, reference):
            return True
        self._refused[reference] = time.monotonic()
        return False

    def pull(self, reference: str, progress: Progress | None = None) -> None:
        """Pull an image; layers that arrived before an interruption are not pulled again.

        Raises:
            Infrastructure: the pull failed.
        """
        name, tag = _split_tag(reference)
        counts: dict[str, tuple[int, int]] = {}
        with convert_engine_errors(f"pull the image {reference}"):
            for step in self._client.api.pull(name, tag=tag, stream=True, decode=True):
                if "error" in step:
                    raise Infrastructure(f"cannot pull the image {reference}: {str(step['error']).strip()}")
                _count_layer(step, counts)
                if progress:
                    progress(
                        sum(came for came, _ in counts.values()), sum(size for _, size in counts.values())
                    )
        _write_note(self._note("pulled", reference), {"image": reference})

    def resolve(self, reference: str) -> str:
        """Return the digest of an image in its registry; empty if none offers it, as ``offered`` says."""
        if not self.offered(reference):
            return ""
        with convert_engine_errors(f"ask a registry for {reference}"):
            found: Mapping[str, Any] = self._client.api.inspect_distribution(reference)  # type: ignore[no-untyped-call]
        return str(found["Descriptor"]["digest"])

    def pull_as(self, reference: str, digest: str, name: str) -> None:
        """Pull the image of a digest, and call it ``name`` here.

        Raises:
            Infrastructure: the pull failed.
        """
        exact = f"{_split_tag(reference)[0]}@{digest}"
        self.pull(exact)
        with convert_engine_errors(f"name the image {exact}"):
            self._client.api.tag(exact, *_split_tag(name))
            # The name by its digest would keep the image on disk when the other one is removed.
            self._client.api.remove_image(exact, noprune=True)
        self._note("pulled", exact).unlink(missing_ok=True)
        _write_note(self._note("pulled", name), {"image": name})

    def note_use(self, tag: str, *, made: bool = False, source: str = "") -> None:
        """Record the use of an image, so that it is among those that may be removed later.

        Args:
            tag: its name.
            made: whether it was made here; one that was neither made nor pulled here is never recorded.
            source: the image that it was made of, to be removed with it if it was pulled.
        """
        note, pulled = self._note("used", tag), self._note("pulled", source or tag).exists()
        if note.exists() and not (made or source):
            note.touch()
        elif made or pulled:
            _write_note(note, {"tag": tag, "pulled": source if pulled else ""})

    def prepare(self, reference: str, tag: str) -> bool:
        """Make the start image of sandboxes, if it is missing or out of date; record its use.

        An existing one does not need its source image.

        Returns:
            Whether it was made just now.

        Raises:
            UserError: the image ``reference`` cannot be used; the message says why.
            Infrastructure: the engine failed.
        """
        alone = not self.has(reference) and self.has(tag)
        made = not alone and prepared.prepare(self._client, reference, tag=tag, repository=True).made
        pulled = reference if self._note("pulled", reference).exists() else ""
        _write_note(self._note("used", tag), {"tag": tag, "pulled": pulled})
        return made

    def kept(self) -> Sequence[PreparedImage]:
        """Return all prepared images that still exist, the longest unused first."""
        found = []
        for note in (self._notes / "used").glob("*.json"):
            try:
                said = json.loads(note.read_text(encoding="utf-8"))
                entry = PreparedImage(said["tag"], said["pulled"], note.stat().st_mtime)
            except (OSError, ValueError, KeyError, TypeError):
                log.warning("%s: not a note of an image; it is left alone", note)
                continue
            if self.has(entry.tag):
                found.append(entry)
            else:
                note.unlink(missing_ok=True)
        return sorted(found, key=lambda entry: (entry.used, entry.tag))

    def disk_bytes(self) -> int:
        """Return the bytes of all of them, with common layers counted once."""
        layers: dict[str, int] = {}
        for entry in self.kept():
            layers |= self._layers(entry)
        return sum(layers.values())

    def collect(self, limit_bytes: int, spared: Collection[str] = ()) -> Sequence[str]:
        """Remove the longest unused until all fit into the limit; return the removed tags.

        Images that a container is made from, and those in ``spared``, stay.
        """
        layers = {entry: self._layers(entry) for entry in self.kept()}
        gone = []
        for entry in list(layers):
            if (
                sum({key: size for each in layers.values() for key, size in each.items()}.values())
                <= limit_bytes
            ):
                break
            if entry.tag not in spared and self._remove(entry):
                gone.append(entry.tag)
                del layers[entry]
        return gone

    def _layers(self, entry: PreparedImage) -> Mapping[str, int]:
        with convert_engine_errors(f"look at the image {entry.tag}"):
            found = find_image(self._client, entry.tag)
            if found is None:
                return {}
            names: list[str] = found["RootFS"].get("Layers") or []
            steps: Sequence[Mapping[str, Any]] = self._client.api.history(entry.tag)  # type: ignore[no-untyped-call]
            sizes = [int(step["Size"]) for step in reversed(steps) if step["Size"]]
            if len(sizes) != len(names):
                # An empty layer; the history does not distinguish it from a step without one.
                sizes = [int(found["Size"]) // max(1, len(names))] * len(names)
        return dict(zip(names, sizes, strict=True))

    def _remove(self, entry: PreparedImage) -> bool:
        import docker

        for name in filter(None, (entry.tag, entry.pulled)):
            try:
                self._client.api.remove_image(name, noprune=True)
            except docker.errors.ImageNotFound:
                pass
            except docker.errors.APIError as error:
                log.warning("keeping the image %s: %s", name, error.explanation)
                return False
        self._note("used", entry.tag).unlink(missing_ok=True)
        if entry.pulled:
            self._note("pulled", entry.pulled).unlink(missing_ok=True)
        return True

    def _note(self, kind: str, name: str) -> Path:
        return self._notes / kind / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"


def _split_tag(reference: str) -> tuple[str, str]:
    """Return name and tag (or digest) as the engine takes them."""
    name, at, digest = reference.partition("@")
    if at:
        return name, digest
    name, colon, tag = reference.rpartition(":")
    return (name, tag) if colon and "/" not in tag else (reference, "latest")


def _count_layer(step: Mapping[str, Any], counts: dict[str, tuple[int, int]]) -> None:
    detail = step.get("progressDetail") or {}
    layer = str(step.get("id", ""))
    if step.get("status") == "Downloading" and detail.get("total"):
        counts[layer] = (int(detail["current"]), int(detail["total"]))
    elif step.get("status") in ("Download complete", "Pull complete") and layer in counts:
        counts[layer] = (counts[layer][1], counts[layer][1])


def _write_note(note: Path, said: Mapping[str, str]) -> None:
    note.parent.mkdir(parents=True, exist_ok=True)
    draft = note.with_name(f"{note.name}.{os.getpid()}.{time.monotonic_ns()}")
    draft.write_text(json.dumps(said), encoding="utf-8")
    draft.replace(note)
