"""The images of instances, and the fetching of them before a search: several at once, within a disk budget.

Sandboxes start from an image that the engine derives from an instance's, without the repository's history.
"""

import hashlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dgm.benchmarks.swebench_rows import Instance
from dgm.benchmarks.toml_table import suggestion
from dgm.domain import TaskId
from dgm.errors import DgmError, Infrastructure, UserError

IN_ENGINE = "docker:"
EVERY = "*"
GB = 1_000_000_000
Progress = Callable[[str, str], None]
"""Callback that takes an instance and its progress in words; called from any thread, one at a time."""


class Store(Protocol):
    """An engine's images for instances."""

    def has(self, reference: str) -> bool:
        """Return whether the engine has the image."""
        ...

    def offered(self, reference: str) -> bool:
        """Return whether a registry offers the image."""
        ...

    def pull(self, reference: str, progress: Callable[[int, int], None] | None = None) -> None:
        """Pull the image."""
        ...

    def prepare(self, reference: str, tag: str) -> bool:
        """Make the image that sandboxes start from; return whether this call made it."""
        ...

    def disk_bytes(self) -> int:
        """Return the bytes on disk of all instance images."""
        ...

    def collect(self, limit_bytes: int, spared: Collection[str] = ()) -> Sequence[str]:
        """Remove the least recently used instance images."""
        ...


@runtime_checkable
class HasInstances(Protocol):
    """An engine that keeps images for instances."""

    @property
    def instances(self) -> Store:
        """The engine's store of instance images."""
        ...


def store_of(engine: object) -> Store:
    """Return the engine's store.

    Raises:
        UserError: it has no images.
    """
    if isinstance(engine, HasInstances):
        return engine.instances
    name = getattr(engine, "name", "this sandbox")
    raise UserError(
        f"SWE-bench instances run in images, which {name} has not; start Docker, and set sandbox to docker"
    )


def check(images: Mapping[str, str], instances: Mapping[TaskId, Instance]) -> None:
    """Check that each key of ``benchmarks.swebench.images`` has a meaning, and that each instance has an image.

    Raises:
        UserError: one has none.
    """
    known = [EVERY, *instances, *{instance.repo for instance in instances.values()}]
    for key in images:
        if key not in known:
            near = suggestion(key, known)
            raise UserError(
                f"benchmarks.swebench.images: {key!r} is no instance, no repository and not '*'"
                f"{near if 'mean' in near else ''}"
            )
    for instance in instances.values():
        if not image_of(instance, images):
            raise UserError(
                f"{instance.id}: no image: give it an image, or name one in benchmarks.swebench.images"
            )


def image_of(instance: Instance, images: Mapping[str, str]) -> str:
    """Return the image that the user names for the instance, else its own."""
    keys = (instance.id, instance.repo, EVERY)
    return next((images[key] for key in keys if key in images), instance.image)


def tag_of(instance: Instance, images: Mapping[str, str]) -> str:
    """Return the tag of the image that the instance's sandboxes start from; known without an engine."""
    return f"dgm/instance:{hashlib.sha256(image_of(instance, images).encode()).hexdigest()[:16]}"


def ensure(
    instance: Instance,
    images: Mapping[str, str],
    store: Store,
    progress: Callable[[int, int], None] | None = None,
) -> bool:
    """Make sure that sandboxes of the instance can be opened; block, for minutes if the image has to be pulled.

    Returns:
        Whether this call made the image that they start from.

    Raises:
        Infrastructure: they cannot; the message says what to do.
    """
    image, tag = image_of(instance, images), tag_of(instance, images)
    try:
        is_here = store.has(tag) or store.has(image)
        if is_here or store.offered(image):
            if not is_here:
                store.pull(image, progress)
            return store.prepare(image, tag)
    except Infrastructure:
        raise
    except DgmError as error:
        raise Infrastructure(f"{instance.id}: {error}") from error
    raise Infrastructure(
        f"{instance.id}: its image {image} is neither here nor offered by a registry; pull or build it, or "
        "name another one in benchmarks.swebench.images"
    )


@dataclass(slots=True)
class Fetched:
    """The outcome of a fetch."""

    ready: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Reasons of failures by instance."""
    removed: list[str] = field(default_factory=list)
    """Images of other instances that were removed to make room."""


def fetch(
    instances: Sequence[Instance],
    images: Mapping[str, str],
    store: Store,
    *,
    workers: int = 4,
    disk_gb: float = 120.0,
    progress: Progress = lambda _instance, _words: None,
) -> Fetched:
    """Pull and prepare the images; existing ones are skipped, so that an interrupted fetch resumes.

    The least recently used images of other instances make room. If that is not enough, fetching stops.

    Args:
        instances: in the order in which they are wanted.
        images: as in ``benchmarks.swebench.images``.
        store: the engine's.
        workers: number of concurrent fetches.
        disk_gb: limit for all images of instances together, in GB.
        progress: called for each step.
    """
    fetched, lock, limit = Fetched(), threading.Lock(), int(disk_gb * GB)
    spared = {tag_of(instance, images) for instance in instances}
    stopped = ""

    def report(instance: Instance, words: str) -> None:
        if stopped:
            raise Infrastructure(stopped)
        with lock:
            progress(instance.id, words)

    def fetch_one(instance: Instance) -> None:
        nonlocal stopped
        report(instance, "preparing")
        pulling = "pulling {:.0f} of {:.0f} MB"
        if ensure(
            instance,
            images,
            store,
            lambda *sizes: report(instance, pulling.format(*(n / 1e6 for n in sizes))),
        ):
            with lock:
                fetched.removed += store.collect(limit, spared)
                used = store.disk_bytes()
            if used > limit:
                stopped = (
                    f"the images of instances take {used / GB:.1f} GB, and {disk_gb:g} GB are allowed: raise "
                    "benchmarks.swebench.disk_gb, or choose a smaller subset"
                )

    with ThreadPoolExecutor(workers) as pool:
        futures = {pool.submit(fetch_one, instance): instance.id for instance in instances}
        try:
            for future in as_completed(futures):
                try:
                    future.result()
                    fetched.ready.append(futures[future])
                    words = "ready"
                except DgmError as error:
                    fetched.failed[futures[future]] = str(error)
                    words = f"failed: {error}"
                with lock:
                    progress(futures[future], words)
        except BaseException:
            stopped = "interrupted"
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return fetched
