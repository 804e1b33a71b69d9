"""The image of an instance, and the ways to get it onto this machine.

Three ways are tried in this order: the image that the user names (``benchmarks.swebench.images``), the published one
if a registry answers, and the one built by the swebench package's own recipes. Sandboxes start from an image derived
from it, without the repository's history.
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
        f"SWE-bench instances run in images, which {name} has not; start Docker, use --sandbox docker"
    )


def published(instance: str) -> str:
    """Return the name under which SWE-bench publishes an instance's image."""
    return f"swebench/sweb.eval.x86_64.{instance.lower().replace('__', '_1776_')}:latest"


def built(instance: str) -> str:
    """Return the name that the swebench package gives to an image that it builds itself."""
    return f"sweb.eval.x86_64.{instance.lower()}:latest"


def named(instance: Instance, images: Mapping[str, str]) -> str:
    """Return the image that the user or the instance itself names; empty if neither does."""
    keys = (instance.id, instance.repo, EVERY)
    return next((images[key] for key in keys if key in images), instance.image)


def check(images: Mapping[str, str], instances: Mapping[TaskId, Instance]) -> None:
    """Check that each key of the mapping has a meaning.

    Raises:
        UserError: one has none.
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
    """Return the tag of the image that the instance's sandboxes start from; known without an engine."""
    first = candidates(instance, images)[0]
    return f"dgm/instance:{hashlib.sha256(first.encode()).hexdigest()[:16]}"


def candidates(instance: Instance, images: Mapping[str, str]) -> Sequence[str]:
    """Return the instance's images, the best first; only the first can come from a registry."""
    chosen = named(instance, images)
    return [chosen] if chosen else [published(instance.id), built(instance.id)]


def source(
    instance: Instance,
    images: Mapping[str, str],
    store: Store,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Return the instance's image; get it into the engine if it is missing.

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
        f"{instance.id}: no image: no registry offers {possible[0]}, {possible[1]} is not here, and "
        "benchmarks.swebench.images names none for it, its repository or '*'"
    )


def ensure(instance: Instance, images: Mapping[str, str], store: Store) -> str:
    """Make sure that sandboxes of the instance can be opened; block, for minutes if the image has to be pulled.

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
    """Return the instance in the swebench package's format."""
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
