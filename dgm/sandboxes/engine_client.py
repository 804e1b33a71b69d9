"""Calls to the Docker engine: errors that a person can act on, images by name, locks per image."""

import asyncio
import contextlib
import fcntl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from dgm.errors import Infrastructure
from dgm.paths import cache_folder
from dgm.sandboxes import podman

if TYPE_CHECKING:
    from docker import DockerClient

T = TypeVar("T")


async def call_engine(purpose: str, call: Callable[[], T]) -> T:
    """Run a blocking call to the engine in a thread, and return its result.

    Raises:
        Infrastructure: the engine failed.
    """
    with convert_engine_errors(purpose):
        return await asyncio.to_thread(call)


@contextlib.contextmanager
def convert_engine_errors(purpose: str) -> Iterator[None]:
    """Convert the library's errors to ones that give the attempted operation and the remedy.

    Raises:
        Infrastructure: the engine failed.
    """
    import docker
    import requests

    try:
        yield
    except docker.errors.NotFound as error:
        raise Infrastructure(f"cannot {purpose}: it is gone ({error.explanation})") from error
    except docker.errors.APIError as error:
        said = str(error.explanation or error)
        remedy = podman.find_remedy(said)
        raise Infrastructure(
            f"cannot {purpose}: the Docker engine says: {said}{remedy and f': {remedy}'}"
        ) from error
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise Infrastructure(
            f"cannot {purpose}: no Docker engine answers ({error}): start it, or install one"
        ) from error


def find_image(client: "DockerClient", reference: str) -> Mapping[str, Any] | None:
    """Return the engine's data about an image, or ``None`` if it has none of that name."""
    import docker

    try:
        found: Mapping[str, Any] = client.api.inspect_image(reference)  # type: ignore[no-untyped-call]
    except docker.errors.ImageNotFound:
        return None
    return found


@contextlib.contextmanager
def lock_image(name: str) -> Iterator[None]:
    """Hold a lock that allows one maker per image on this machine; ``name`` is the lock's file name."""
    with (cache_folder("locks") / name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.asynccontextmanager
async def hold_lock(name: str) -> AsyncIterator[None]:
    """Hold a lock of ``lock_image`` without blocking the event loop."""
    with contextlib.ExitStack() as stack:
        await asyncio.to_thread(stack.enter_context, lock_image(name))
        yield


def remove_container(client: "DockerClient", ident: str) -> None:
    """Remove a container that may be going away by itself at this moment."""
    import docker

    try:
        client.api.remove_container(ident, force=True, v=True)
    except docker.errors.NotFound:
        pass
    except docker.errors.APIError as error:
        if "already in progress" not in str(error):
            raise
