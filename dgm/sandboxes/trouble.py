"""Calls to the Docker engine: off the event loop, and with errors that a person can act on."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from dgm.errors import Infrastructure

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
        raise Infrastructure(
            f"cannot {purpose}: the Docker engine says: {error.explanation or error}"
        ) from error
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise Infrastructure(
            f"cannot {purpose}: no Docker engine answers ({error}): start it, or install one"
        ) from error
