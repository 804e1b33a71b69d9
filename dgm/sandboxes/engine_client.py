"""The connection to a Docker engine by the docker library, with errors that a user can act on."""

import asyncio
import contextlib
import fcntl
import functools
import hashlib
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dgm.errors import Infrastructure, UserError
from dgm.paths import cache_folder
from dgm.sandboxes import owners
from dgm.sandboxes.engine_address import EngineAddress, resolve_address

if TYPE_CHECKING:
    from docker import APIClient, DockerClient

T = TypeVar("T")

HELPER = "dgm-helper-"
"""Beginning of the name of a container in which dgm prepares an image or a volume; the mark of its owner follows.

An image that is made of it would inherit labels.
"""
SLOW_S = 1800
"""Maximum seconds of a call on a whole image, such as a commit."""
UNUSED_S = 7 * 24 * 3600.0
"""Seconds after which an image or a volume that nobody used may be removed."""
_CALL_S = 60
"""Maximum seconds of any other call."""
_OLDEST_API = "1.40"
"""Version of the engine's interface in which its newest version is asked for."""
_ANSWERS_WITHIN_S = 20
_MACHINES: Mapping[str, str] = {"amd64": "x86_64", "arm64": "aarch64"}
_REMEDIES: Mapping[str, str] = {
    "container-init binary not found": "install the package 'catatonit' on its machine",
    "opening seccomp profile failed": (
        "it sees other files than dgm; give its address by tcp:// or ssh://, so that its own profile is used"
    ),
    "cgroups in hybrid mode not supported": 'write runtime = "runc" below [engine] in its containers.conf',
}
"""Parts of Podman's messages → what a user has to do."""


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """An engine, as it describes itself."""

    is_podman: bool
    version: str
    machine: str
    """Architecture of its sandboxes, as ``uname -m`` says it, such as ``x86_64``."""
    rootless: bool
    bounds_processes: bool
    bounds_memory: bool
    cpus: int = 1
    """Processors of its machine."""
    ident: str = ""
    """Id by which it is the same engine at whatever address; empty if it tells none."""

    @property
    def lacks(self) -> Sequence[str]:
        """The things that it does not bound, in words."""
        bounded = {"processes": self.bounds_processes, "memory": self.bounds_memory}
        return [name for name, is_bounded in bounded.items() if not is_bounded]


def read_facts(version: Mapping[str, Any], info: Mapping[str, Any]) -> EngineFacts:
    """Return the facts in the engine's answers to ``/version`` and ``/info``."""
    names = [str(part.get("Name", "")) for part in version.get("Components") or ()]
    rootless = any("rootless" in str(option) for option in info.get("SecurityOptions") or ())
    # Podman says that the machine could bound something, not that it may.
    powerless = rootless and str(info.get("CgroupVersion", "1")) == "1"
    architecture = str(version.get("Arch") or info.get("Architecture") or "")
    return EngineFacts(
        is_podman=any(name.startswith("Podman") for name in names),
        version=str(version.get("Version", "")),
        machine=_MACHINES.get(architecture, architecture),
        rootless=rootless,
        bounds_processes=bool(info.get("PidsLimit")) and not powerless,
        bounds_memory=bool(info.get("MemoryLimit")) and not powerless,
        cpus=max(1, int(info.get("NCPU") or 1)),
        ident=str(info.get("ID") or ""),
    )


class EngineConnection:
    """A connection to one engine."""

    def __init__(self, address: EngineAddress | None = None) -> None:
        """Connect to the engine at ``address``; by default, the one that the environment names.

        Raises:
            UserError: the address, or a file that it needs, is no good.
            Infrastructure: no engine answers there.
        """
        self.address = resolve_address() if address is None else address
        with self._naming_silence():
            client = self._make_client(_OLDEST_API, _ANSWERS_WITHIN_S)
            self._version: Mapping[str, Any] = client.version(api_version=False)
            client.close()
            if "ApiVersion" not in self._version:
                raise Infrastructure(f"{self.address}: what answers there is no Docker engine")
            self.client = self._make_client(str(self._version["ApiVersion"]), _CALL_S)
            """The library's client of the engine, whose calls block."""

    @functools.cached_property
    def facts(self) -> EngineFacts:
        """The engine as it describes itself; the first access blocks."""
        with convert_engine_errors("ask the engine what it is"):
            return read_facts(self._version, self.client.info())

    def check_answers(self) -> None:
        """Make sure that the engine answers; blocks."""
        with self._naming_silence():
            api_with_timeout(self.client, _ANSWERS_WITHIN_S).ping()

    def close(self) -> None:
        """End the connection; the second call does nothing."""
        self.client.close()

    @contextlib.contextmanager
    def _naming_silence(self) -> Iterator[None]:
        import docker
        import requests

        try:
            yield
        except (docker.errors.DockerException, requests.RequestException) as error:
            reason: BaseException = error
            while (inner := reason.__cause__ or reason.__context__) is not None:
                reason = inner
            raise Infrastructure(
                f"no Docker engine answers at {self.address} ({reason}): start it, or install one"
            ) from error

    def _make_client(self, version: str, timeout_s: int) -> "DockerClient":
        import docker
        from docker import transport

        address = self.address
        is_ssh = address.url.startswith("ssh://")
        if is_ssh and not hasattr(transport, "SSHHTTPAdapter"):
            raise UserError(f"{address}: needs the library for ssh: pip install 'dgm[ssh]'")
        client = docker.DockerClient(
            address.url, version=version, timeout=timeout_s, tls=address.tls or False, use_ssh_client=True
        )
        # Proxies of the environment are for package indexes and models.
        client.api.trust_env = False
        if is_ssh:
            _share_connections(client.api.get_adapter(client.api.base_url))
        return client


def _share_connections(adapter: Any) -> None:  # noqa: ANN401  (the library's, which has no types for ssh)
    """Let calls by ssh use a connection one after the other: the library would start an ssh for each call."""
    sshconn: Any = import_module("docker.transport.sshconn")

    class Socket(sshconn.SSHSocket):  # type: ignore[misc]
        """The pipes of an ssh, which the end of a response does not close."""

        def makefile(self, mode: str) -> Any:  # noqa: ANN401
            response: Any = os.fdopen(os.dup(self.proc.stdout.fileno()), mode)
            response.channel = self
            return response

    class Connection(sshconn.SSHConnection):  # type: ignore[misc]
        """A connection over such pipes."""

        def connect(self) -> None:
            self.sock = Socket(self.ssh_host)
            self.sock.connect()

    class Pool(sshconn.SSHConnectionPool):  # type: ignore[misc]
        """A pool of such connections."""

        def _new_conn(self) -> Connection:
            return Connection(None, self.timeout, self.ssh_host)

    pool = Pool(timeout=adapter.timeout, maxsize=adapter.max_pool_size, host=adapter.ssh_host)
    adapter.get_connection = lambda *_: pool


async def call_engine(purpose: str, call: Callable[[], T]) -> T:
    """Run a blocking call to the engine in a thread, and return its result."""
    with convert_engine_errors(purpose):
        return await asyncio.to_thread(call)


@contextlib.contextmanager
def convert_engine_errors(purpose: str) -> Iterator[None]:
    """Convert the library's errors to ones that give the attempted operation and the remedy."""
    import docker
    import requests

    try:
        yield
    except docker.errors.NotFound as error:
        raise Infrastructure(f"cannot {purpose}: it is gone ({error.explanation})") from error
    except docker.errors.APIError as error:
        message = str(error.explanation or error)
        remedy = next((f": {remedy}" for part, remedy in _REMEDIES.items() if part in message), "")
        raise Infrastructure(f"cannot {purpose}: the Docker engine says: {message}{remedy}") from error
    except requests.Timeout as error:
        raise Infrastructure(
            f"cannot {purpose}: the Docker engine did not answer in time ({error}): it is paused or overloaded"
        ) from error
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise Infrastructure(
            f"cannot {purpose}: no Docker engine answers ({error}): start it, or install one"
        ) from error


def find_image(client: "DockerClient", reference: str) -> Mapping[str, Any] | None:
    """Return the engine's data about an image, or ``None`` if it has none of that name."""
    import docker

    try:
        image: Mapping[str, Any] = client.api.inspect_image(reference)  # type: ignore[no-untyped-call]
    except docker.errors.ImageNotFound:
        return None
    return image


@contextlib.contextmanager
def lock_image(name: str) -> Iterator[None]:
    """Hold a lock that allows one maker per image on this machine; ``name`` is the lock's file name."""
    with (cache_folder("locks") / name.replace("/", "-").replace(":", "-")).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.asynccontextmanager
async def hold_lock(name: str) -> AsyncIterator[None]:
    """Hold a lock of ``lock_image`` without blocking the event loop."""
    with contextlib.ExitStack() as stack:
        await asyncio.to_thread(stack.enter_context, lock_image(name))
        yield


@contextlib.contextmanager
def helper_container(
    client: "DockerClient",
    image: str,
    memory: str,
    command: Sequence[str] = ("true",),
    **host: Any,  # noqa: ANN401
) -> Iterator[str]:
    """Create a container in which dgm prepares an image or a volume: as root, bounded, without network.

    It is removed when the context ends, or by ``remove_ended_helpers`` if this process dies.

    Args:
        client: the engine.
        image: name or id.
        memory: limit, as Docker writes it.
        command: all words of its program.
        host: further arguments of the library's ``create_host_config``.

    Yields:
        The id of the container, which is not started.
    """
    from docker.types import Ulimit

    remove_ended_helpers(client)
    api = client.api
    config = api.create_host_config(
        network_mode="none",
        security_opt=["no-new-privileges"],
        mem_limit=memory,
        pids_limit=256,
        # Podman's own limits fail where root may not raise them.
        ulimits=[Ulimit(name=name, soft=1024, hard=1024) for name in ("nofile", "nproc")],
        **host,
    )
    made = api.create_container(
        image,
        entrypoint=list(command),
        command=[],
        user="0:0",
        working_dir="/",
        name=f"{HELPER}{owners.label_owner().get(owners.LABEL, '')}-{secrets.token_hex(8)}",
        # Else the proxies of the user's configuration, which may hold passwords, would be in its environment.
        use_config_proxy=False,
        host_config=config,
    )
    try:
        yield str(made["Id"])
    finally:
        remove_container(client, str(made["Id"]))


def remove_ended_helpers(client: "DockerClient") -> None:
    """Remove helper containers whose owners have ended."""
    for container in client.api.containers(all=True, filters={"name": HELPER}):
        name = container["Names"][0].removeprefix("/")
        if owners.has_ended(name.removeprefix(HELPER).partition("-")[0]):
            remove_container(client, container["Id"])


def remove_container(client: "DockerClient", ident: str) -> None:
    """Remove a container, which may be going away by itself at this moment, and its anonymous volumes."""
    import docker

    try:
        client.api.remove_container(ident, force=True, v=True)
    except docker.errors.NotFound:
        pass
    except docker.errors.APIError as error:
        if "already in progress" not in str(error):
            raise


def slow_api(client: "DockerClient") -> "APIClient":
    """Return the interface for calls on whole images, which may take an engine many minutes."""
    return api_with_timeout(client, SLOW_S)


def api_with_timeout(client: "DockerClient", seconds: int) -> "APIClient":
    """Return the client's interface, on the same connections, with another time limit."""
    api = type(client.api).__new__(type(client.api))
    api.__dict__.update(client.api.__dict__, timeout=seconds)
    return api


def note_use(name: str) -> None:
    """Note that this machine uses an image or a volume now."""
    note_of(name).touch()


def find_last_use(name: str) -> float:
    """Return the time of the last use, in seconds since 1970; 0 if this machine knows of none."""
    try:
        return note_of(name).stat().st_mtime
    except OSError:
        return 0.0


def note_of(name: str) -> Path:
    """Return the file whose time is that of the last use."""
    return cache_folder("uses") / hashlib.sha256(name.encode()).hexdigest()[:32]
