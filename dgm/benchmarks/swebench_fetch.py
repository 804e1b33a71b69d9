"""The fetching of instances' images before a search: several at once, resumable, within a disk budget."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum

from dgm.benchmarks.swebench_images import Store, candidates, source, tag_of
from dgm.benchmarks.swebench_instances import Instance
from dgm.errors import DgmError, Infrastructure

GB = 1_000_000_000


class Stage(StrEnum):
    """The progress of an instance's image."""

    PULLING = "pulling"
    PREPARING = "preparing"
    READY = "ready"
    """The image was here already, or is now."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Step:
    """A report on one instance."""

    instance: str
    stage: Stage
    came: int = 0
    """Bytes pulled so far."""
    size: int = 0
    """Bytes to pull, as far as known."""
    said: str = ""
    """Reason of a failure."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The work that a fetch would do."""

    here: int
    """Instances that can be worked on now."""
    missing: int


@dataclass(slots=True)
class Fetched:
    """The outcome of a fetch."""

    ready: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Reasons of failures by instance."""
    removed: list[str] = field(default_factory=list)
    """Images of other instances that were removed to make room."""


def estimate(instances: Sequence[Instance], images: Mapping[str, str], store: Store) -> Estimate:
    """Count the instances that a fetch would make ready; fetch nothing."""
    missing = sum(not _ready(each, images, store) for each in instances)
    return Estimate(len(instances) - missing, missing)


def fetch(
    instances: Sequence[Instance],
    images: Mapping[str, str],
    store: Store,
    *,
    at_once: int = 4,
    disk_gb: float = 120.0,
    report: Callable[[Step], None] | None = None,
) -> Fetched:
    """Fetch and prepare the images; existing ones are skipped, so that an interrupted fetch resumes.

    The least recently used images of other instances make room. If that is not enough, fetching stops.

    Args:
        instances: in the order in which they are wanted.
        images: as in ``benchmarks.swebench.images``.
        store: the engine's.
        at_once: number of concurrent fetches.
        disk_gb: limit for all images of instances together, in GB.
        report: called for each step, from any thread, one at a time.
    """
    work = _Fetch(instances, images, store, disk_gb, report)
    with ThreadPoolExecutor(at_once) as pool:
        futures = [pool.submit(work.one, each) for each in instances]
        try:
            for future in futures:
                future.result()
        except BaseException:
            work.stopped = "interrupted"
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return work.fetched


class _Fetch:
    def __init__(
        self,
        instances: Sequence[Instance],
        images: Mapping[str, str],
        store: Store,
        disk_gb: float,
        report: Callable[[Step], None] | None,
    ) -> None:
        self.fetched = Fetched()
        self.stopped = ""
        self._images = images
        self._store = store
        self._disk_gb = disk_gb
        self._report = report
        self._spared = {tag_of(each, images) for each in instances}
        self._turn = threading.Lock()

    def one(self, instance: Instance) -> None:
        try:
            made = self._prepared(instance)
            self._say(Step(instance.id, Stage.READY))
            if made:
                self._make_room()
        except DgmError as error:
            self._say(Step(instance.id, Stage.FAILED, said=str(error)))
        except BaseException:
            self.stopped = "interrupted"
            raise

    def _prepared(self, instance: Instance) -> bool:
        if self.stopped:
            raise Infrastructure(self.stopped)
        reference = self._source(instance)
        if not self._store.has(tag_of(instance, self._images)):
            self._say(Step(instance.id, Stage.PREPARING))
        return self._store.prepare(reference, tag_of(instance, self._images))

    def _source(self, instance: Instance) -> str:
        store, possible = self._store, candidates(instance, self._images)
        if store.has(tag_of(instance, self._images)) and not any(map(store.has, possible)):
            return possible[0]
        return source(instance, self._images, store, lambda came, size: self._pulling(instance, came, size))

    def _pulling(self, instance: Instance, came: int, size: int) -> None:
        if self.stopped:
            raise Infrastructure(self.stopped)
        self._say(Step(instance.id, Stage.PULLING, came, size))

    def _make_room(self) -> None:
        with self._turn:
            limit = int(self._disk_gb * GB)
            self.fetched.removed += self._store.collect(limit, self._spared)
            taken = self._store.disk_bytes()
            if taken > limit and not self.stopped:
                self.stopped = (
                    f"the images of instances take {taken / GB:.1f} GB, and {self._disk_gb:g} GB are allowed: raise "
                    "benchmarks.swebench.disk_gb, or choose a smaller subset"
                )

    def _say(self, step: Step) -> None:
        with self._turn:
            if step.stage is Stage.READY:
                self.fetched.ready.append(step.instance)
            if step.stage is Stage.FAILED:
                self.fetched.failed[step.instance] = step.said
            if self._report:
                self._report(step)


def _ready(instance: Instance, images: Mapping[str, str], store: Store) -> bool:
    return store.has(tag_of(instance, images))
