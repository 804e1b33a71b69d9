"""Which image an instance runs in, and how it comes to this machine.

Three ways, the first that is open: the image that the user names (``benchmarks.swebench.images``), the published one
where a registry answers, the one that the swebench package's own recipes gave. Sandboxes start from an image made from
it, in which the repository's history is gone.
"""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, runtime_checkable

from dgm.benchmarks.swebench_instances import Instance
from dgm.benchmarks.toml_table import suggestion
from dgm.domain import TaskId
from dgm.errors import DgmError, Infrastructure, UserError

IN_ENGINE = "docker:"
EVERY = "*"


class Store(Protocol):
    """An engine's images for instances."""

    def has(self, reference: str) -> bool:
        """Whether the engine has it."""
        ...

    def offered(self, reference: str) -> bool:
        """Whether a registry answers for it."""
        ...

    def download_bytes(self, references: Sequence[str]) -> int | None:
        """What pulling all of them would bring."""
        ...

    def pull(self, reference: str, progress: Callable[[int, int], None] | None = None) -> None:
        """Pulls it."""
        ...

    def prepare(self, reference: str, tag: str) -> bool:
        """Makes what sandboxes start from; whether just now."""
        ...

    def disk_bytes(self) -> int:
        """What all of ours take."""
        ...

    def collect(self, limit_bytes: int, spared: Collection[str] = ()) -> Sequence[str]:
        """Removes the longest unused of ours."""
        ...


@runtime_checkable
class HasInstances(Protocol):
    """An engine that keeps images for instances."""

    @property
    def instances(self) -> Store:
        """Its store."""
        ...


def store_of(engine: object) -> Store:
    """The engine's store.

    Raises:
        UserError: it has no images.
    """
    if isinstance(engine, HasInstances):
        return engine.instances
    name = getattr(engine, "name", "this sandbox")
    raise UserError(
        f"SWE-bench instances run in images, which {name} has not; start Docker, use --sandbox docker"
    )


def published(instance: str) -> str:
    """The name under which SWE-bench publishes an instance's image."""
    return f"swebench/sweb.eval.x86_64.{instance.lower().replace('__', '_1776_')}:latest"


def built(instance: str) -> str:
    """The name that the swebench package gives to an image that it builds itself."""
    return f"sweb.eval.x86_64.{instance.lower()}:latest"


def named(instance: Instance, images: Mapping[str, str]) -> str:
    """The image that the user or the instance itself names; empty where neither does."""
    keys = (instance.id, instance.repo, EVERY)
    return next((images[key] for key in keys if key in images), instance.image)


def check(images: Mapping[str, str], instances: Mapping[TaskId, Instance]) -> None:
    """Looks whether each key of the mapping means something.

    Raises:
        UserError: one does not.
    """
    known = [EVERY, *instances, *{each.repo for each in instances.values()}]
    for key in images:
        if key not in known:
            near = suggestion(key, known)
            raise UserError(
                f"benchmarks.swebench.images: {key!r} is no instance, no repository and not '*'"
                f"{near if 'mean' in near else ''}"
            )


def tag_of(instance: Instance, images: Mapping[str, str]) -> str:
    """What sandboxes of the instance start from; known without an engine."""
    first = candidates(instance, images)[0]
    return f"dgm/instance:{hashlib.sha256(first.encode()).hexdigest()[:16]}"


def candidates(instance: Instance, images: Mapping[str, str]) -> Sequence[str]:
    """The instance's images, the best first; only the first can come from a registry."""
    chosen = named(instance, images)
    return [chosen] if chosen else [published(instance.id), built(instance.id)]


def source(
    instance: Instance,
    images: Mapping[str, str],
    store: Store,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """The instance's image, which the engine has afterwards.

    Raises:
        Infrastructure: it cannot be had; the message names all ways.
    """
    possible = candidates(instance, images)
    for reference in possible:
        if store.has(reference):
            return reference
    if store.offered(possible[0]):
        store.pull(possible[0], progress)
        return possible[0]
    if chosen := named(instance, images):
        raise Infrastructure(
            f"{instance.id}: its image {chosen} is neither here nor offered by a registry; pull or build it, or name "
            "another one in benchmarks.swebench.images"
        )
    raise Infrastructure(
        f"{instance.id}: no image: (1) no registry offers {possible[0]}; (2) it was not built from the swebench "
        f"package's recipes as {possible[1]} (dgm benchmark fetch does, with a network and swebench 4); (3) "
        "benchmarks.swebench.images names none for it, its repository or '*'"
    )


def ensure(instance: Instance, images: Mapping[str, str], store: Store) -> str:
    """Makes sure that sandboxes of the instance can be opened; blocks, for minutes where the image has to be pulled.

    Raises:
        Infrastructure: they cannot; the message says what to do.
    """
    tag = tag_of(instance, images)
    try:
        if store.has(tag) and not any(store.has(each) for each in candidates(instance, images)):
            store.prepare(candidates(instance, images)[0], tag)
        else:
            store.prepare(source(instance, images, store), tag)
    except Infrastructure:
        raise
    except DgmError as error:
        raise Infrastructure(f"{instance.id}: {error}") from error
    return tag


def row(instance: Instance) -> Mapping[str, object]:
    """The instance as the swebench package reads it."""
    return {
        "instance_id": instance.id,
        "repo": instance.repo,
        "version": instance.version,
        "base_commit": instance.base_commit,
        "problem_statement": instance.problem,
        "patch": instance.patch,
        "test_patch": instance.test_patch,
        "FAIL_TO_PASS": list(instance.fail_to_pass),
        "PASS_TO_PASS": list(instance.pass_to_pass),
    }
