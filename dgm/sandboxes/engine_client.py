"""Connect to the Docker engine, and remove containers that may already be going away."""

from typing import TYPE_CHECKING

from dgm.sandboxes.trouble import convert_engine_errors

if TYPE_CHECKING:
    from docker import DockerClient


def connect_engine() -> "DockerClient":
    """Return a client of the Docker engine that the environment names.

    Raises:
        Infrastructure: no engine answers.
    """
    import docker

    with convert_engine_errors("find an engine"):
        client = docker.from_env()
        client.ping()
    return client


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
