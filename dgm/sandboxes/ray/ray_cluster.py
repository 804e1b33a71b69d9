"""Ray's nodes and actors, behind ``Cluster``; the only module that imports Ray. Nothing is kept in Ray."""

import asyncio
import contextlib
import logging
import os
import re
import signal
import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dgm.errors import Infrastructure, UserError
from dgm.sandboxes.ray.cluster import ClusterNode, HostNeeds, Remote
from dgm.sandboxes.ray.host import SandboxHost
from dgm.sandboxes.ray.keeper import NodeKeeper
from dgm.sandboxes.ray.wire import Record, answers, build_digest, encode

NAMESPACE = "dgm"
_NODE_LABEL = "ray.io/node-id"
_NO_REPETITION = {"max_restarts": 0, "max_task_retries": 0}
_MANY = 1000
"""Calls of one actor at once."""
_SHOWN = 300
_REACH_S = 10.0
_CAUSE = re.compile(r"[A-Za-z_.]*(Error|Exception): ")

log = logging.getLogger(__name__)


class RayHost(SandboxHost):
    """A host that knows its node."""

    @answers
    async def where(self) -> Record:
        """Return the id of its node."""
        import ray

        return encode(str(ray.get_runtime_context().get_node_id()))


class RayKeeper(NodeKeeper):
    """A keeper that ends with its process."""

    def __init__(self) -> None:
        super().__init__(lambda: os._exit(0), withdraw=lambda: _request_bundles([]))


def connect(address: str) -> "RayCluster":
    """Join a cluster as its head, or take the one that this process has joined.

    Args:
        address: ``auto`` (the cluster that this machine is a node of) or ``HOST:PORT``.

    Raises:
        UserError: the package ray is missing, or no cluster answers.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise UserError("the sandbox ray needs the package ray: pip install 'dgm[ray]'") from error
    if not ray.is_initialized():
        with _own_signals():
            try:
                _check_reachable(address)
                ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, configure_logging=False)
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                what = "on this machine" if address == "auto" else f"at {address}"
                raise UserError(
                    f"no Ray cluster {what}: start one with 'ray start --head', join one with 'ray start "
                    f"--address=HOST:PORT', or name it with --engine ray://HOST:PORT ({_first_line(error)})"
                ) from error
        _keep_off_stdout()
    return RayCluster()


class RayCluster:
    """The cluster that this process has joined."""

    @property
    def head_host(self) -> str:
        """The address of this machine among the nodes."""
        import ray

        return str(ray.util.get_node_ip_address())

    async def nodes(self) -> Mapping[str, ClusterNode]:
        """Return the live nodes with processors."""
        import ray

        try:
            found = await asyncio.to_thread(ray.nodes)
        except Exception as error:  # Ray's own, and those of its connection
            raise Infrastructure(f"the Ray cluster does not answer: {_first_line(error)}") from error
        return {
            str(node["NodeID"]): ClusterNode(
                f"{node['NodeManagerAddress']} ({str(node['NodeID'])[:6]})",
                float(node["Resources"]["CPU"]),
                int(node["Resources"].get("memory", 0) // 2**20),
            )
            for node in found
            if node["Alive"] and node["Resources"].get("CPU")
        }

    async def ask_for_room(self, needs: HostNeeds, count: int) -> None:
        """Tell Ray's autoscaler; where there is none, this has no effect."""
        bundle = {"CPU": needs.cpus, "memory": needs.memory_mb * 2**20}
        try:
            await asyncio.to_thread(_request_bundles, [bundle] * count)
        except Exception as error:  # Ray's own, and those of its connection
            raise Infrastructure(f"the Ray cluster does not answer: {_first_line(error)}") from error

    def keeper(self, node: str) -> Remote:
        """Return the keeper of a node; one of another dgm stays, for the heads that use it."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        actor = ray.remote(RayKeeper).options(
            name=f"keeper-{build_digest()}-{node}",
            namespace=NAMESPACE,
            lifetime="detached",
            get_if_exists=True,
            num_cpus=0,
            max_concurrency=_MANY,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            **_NO_REPETITION,
        )
        return RayRemote(actor, f"the keeper of node {node[:6]}")

    def start_host(self, needs: HostNeeds, avoid: Collection[str], near: Collection[str]) -> Remote:
        """Return a new host; Ray sets the processors and memory of its sandbox aside."""
        import ray

        options: dict[str, Any] = {}
        elsewhere = {_NODE_LABEL: f"!in({','.join(avoid)})"} if avoid else {}
        if wished := [node for node in near if node not in avoid]:
            options["label_selector"] = {_NODE_LABEL: f"in({','.join(wished)})"}
            options["fallback_strategy"] = [{"label_selector": elsewhere}]
        elif elsewhere:
            options["label_selector"] = elsewhere
        actor = ray.remote(RayHost).options(
            num_cpus=needs.cpus,
            memory=needs.memory_mb * 2**20,
            max_concurrency=_MANY,
            scheduling_strategy="SPREAD",
            **_NO_REPETITION,
            **options,
        )
        return RayRemote(actor, "the host of a sandbox")


class RayRemote:
    """An actor, started when it is first needed."""

    def __init__(self, options: Any, what: str) -> None:  # noqa: ANN401  (Ray has no type for it)
        self._actor = options.remote()
        self._what = what

    async def call(self, method: str, *args: object) -> object:
        """Return what the method returns; whatever Ray raises is the infrastructure's."""
        from ray.exceptions import RayError

        try:
            found: object = await getattr(self._actor, method).remote(*args)
        except RayError as error:
            raise Infrastructure(
                f"{self._what} is lost: {type(error).__name__}: {_first_line(error)}"
            ) from error
        return found

    def kill(self) -> None:
        """End its process."""
        import ray

        # It may be dead already, and the cluster may be gone.
        with contextlib.suppress(Exception):
            ray.kill(self._actor)


def _request_bundles(bundles: Sequence[Mapping[str, float]]) -> None:
    from ray.autoscaler.sdk import request_resources

    request_resources(bundles=[dict(bundle) for bundle in bundles])


def _check_reachable(address: str) -> None:
    """Try to connect to a named head: Ray itself takes more than a minute to give up.

    Raises:
        OSError: nothing answers there.
    """
    if address != "auto":
        host, _, port = address.rpartition(":")
        socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()


def _keep_off_stdout() -> None:
    """Log what Ray prints about its nodes: standard output is dgm's, and may be JSON. Ray has no option for it."""
    from ray._private import worker

    def note(data: Mapping[str, Any], **_: object) -> None:
        for text in data.get("lines", ()):
            log.info("ray: %s", str(text).strip().partition("\n")[0][:_SHOWN])

    if hasattr(worker, "print_to_stdstream"):
        worker.print_to_stdstream = note


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the handlers of signals: Ray puts its own in their place."""
    kept = {}
    for number in (signal.SIGTERM, signal.SIGINT):
        kept[number] = signal.getsignal(number)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):  # not the main thread, where Ray leaves them alone
            for number, handler in kept.items():
                signal.signal(number, handler)


def _first_line(error: BaseException) -> str:
    """Return the line of an error's text that says most: the exception on the node, else the first one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if _CAUSE.match(line)]
    return next(iter([*causes[-1:], *lines]), type(error).__name__)[:_SHOWN]
