"""Ray behind a narrow seam: nodes, room that is set aside, and one actor on each node. Nothing of a run is kept in Ray.

Ray restarts and repeats nothing: to repeat an action is the search's decision.
"""

import asyncio
import contextlib
import functools
import logging
import os
import re
import signal
import socket
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from dgm.errors import DgmError, Infrastructure, UserError
from dgm.sandboxes.ray.node import Node
from dgm.sandboxes.threads import finish_work, make_or_dispose

_NODE_LABEL = "ray.io/node-id"
_CALLS_AT_ONCE = 1000
_LOOK_S = (0.005, 0.5)
"""Shortest and longest pause between two questions whether there is room."""
_SHOWN = 300
_REACH_S = 10.0
_CAUSE = re.compile(r"[A-Za-z_.]*(Error|Exception): ")

log = logging.getLogger(__name__)


class NodeLost(Infrastructure):
    """A node's actor, or the node itself, does not answer any more; all its sandboxes are lost."""


class ClusterNode(NamedTuple):
    """One live node that takes sandboxes: its address, for people, and all that it has."""

    name: str
    cpus: float
    memory_mb: int


class Room(NamedTuple):
    """The id of a node on which room is set aside, and what gives it back and blocks."""

    node: str
    release: Callable[[], None]


def connect(address: str) -> "RayCluster":
    """Join the cluster at ``HOST:PORT`` or, ``auto``, of this machine; or take the one that this process has joined.

    Raises:
        UserError: the package ray is missing, or no cluster answers.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise UserError("the sandbox ray needs the package ray: pip install 'dgm[ray]'") from error
    if not ray.is_initialized():
        handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            if address != "auto":
                # Ray itself takes more than a minute to give up.
                host, _, port = address.rpartition(":")
                socket.create_connection((host.strip("[]"), int(port)), _REACH_S).close()
            ray.init(address=address, namespace="dgm", log_to_driver=False, configure_logging=False)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            what = "on this machine" if address == "auto" else f"at {address}"
            raise UserError(
                f"no Ray cluster {what}: start one with 'ray start --head', join one with 'ray start "
                f"--address=HOST:PORT', or set engine to ray://HOST:PORT ({_first_line(error)})"
            ) from error
        finally:
            # Ray puts its own in their place, where this is the main thread.
            with contextlib.suppress(ValueError):
                for number, handler in handlers.items():
                    signal.signal(number, handler)
        _keep_off_stdout()
    return RayCluster()


class RayCluster:
    """The cluster that this process has joined: its nodes, and the actors that dgm starts on them.

    Methods raise ``Infrastructure`` if it does not answer.
    """

    @property
    def head_host(self) -> str:
        """The address of this machine among the nodes."""
        import ray

        address: Callable[[], str] = ray.util.get_node_ip_address
        return address()

    async def nodes(self) -> Mapping[str, ClusterNode]:
        """Return the live nodes with processors by id."""
        import ray

        return {
            str(node["NodeID"]): ClusterNode(
                f"{node['NodeManagerAddress']} ({str(node['NodeID'])[:6]})",
                float(node["Resources"]["CPU"]),
                int(node["Resources"].get("memory", 0) // 2**20),
            )
            for node in await _ask(ray.nodes)
            if node["Alive"] and node["Resources"].get("CPU")
        }

    async def reserve(
        self, cpus: float, memory_mb: int, avoid: Collection[str], wait_s: float
    ) -> Room | None:
        """Set room aside on a node that is not avoided; return None if none has it in time.

        It is a placement group, which a cluster that scales itself takes for demand.
        """
        from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group

        elsewhere = [{_NODE_LABEL: f"!in({','.join(sorted(avoid))})"}] if avoid else None
        bundle = {"CPU": cpus, "memory": float(memory_mb * 2**20)}

        def remove(group: Any) -> None:  # noqa: ANN401  (Ray's)
            # The cluster may be gone.
            with contextlib.suppress(Exception):
                remove_placement_group(group)

        group = await _ask(lambda: placement_group([bundle], bundle_label_selector=elsewhere), remove)
        release = functools.partial(remove, group)
        pause_s, longest_s = _LOOK_S
        ends = asyncio.get_running_loop().time() + wait_s
        try:
            while True:
                state: Mapping[str, Any] = await _ask(lambda: placement_group_table(group))
                if state["state"] == "CREATED":
                    return Room(str(state["bundles_to_node_id"][0]), release)
                if asyncio.get_running_loop().time() > ends:
                    await finish_work(release)
                    return None
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, longest_s)
        except BaseException:
            await finish_work(release)
            raise

    def start_actor(self, node: str) -> "NodeActor":
        """Start an actor on a node, without a share of its processors; it ends with this process."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        options = ray.remote(Node).options(
            num_cpus=0,
            max_concurrency=_CALLS_AT_ONCE,
            max_restarts=0,
            max_task_retries=0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        )
        return NodeActor(options.remote(), f"the actor of node {node[:6]}")

    def share(self, data: bytes) -> Any:  # noqa: ANN401  (Ray has no type for it)
        """Return what stands for ``data`` in calls; it is sent once to each node that needs it."""
        import ray

        return ray.put(data)


class NodeActor:
    """The ``Node`` object of one node."""

    def __init__(self, handle: Any, name: str) -> None:  # noqa: ANN401  (Ray has no type for it)
        self._handle, self._name = handle, name

    async def call(self, method: str, *args: object) -> object:
        """Return what a method returns, and raise what it raises on purpose, or ``NodeLost``."""
        from ray.exceptions import RayError, RayTaskError

        try:
            answer: object = await getattr(self._handle, method).remote(*args)
        except RayError as error:
            if isinstance(error, RayTaskError) and isinstance(error.cause, DgmError):
                raise error.cause from None
            kind = Infrastructure if isinstance(error, RayTaskError) else NodeLost
            raise kind(f"{self._name} failed: {type(error).__name__}: {_first_line(error)}") from error
        return answer

    def kill(self) -> None:
        """End its process; sandboxes that it has open are removed."""
        import ray

        # It may be dead already, and the cluster may be gone.
        with contextlib.suppress(Exception):
            ray.kill(self._handle)


async def _ask(question: Callable[[], Any], dispose: Callable[[Any], object] = lambda _: None) -> Any:  # noqa: ANN401
    try:
        return await make_or_dispose(question, dispose)
    except Exception as error:  # Ray's own, and those of its connection
        raise Infrastructure(f"the Ray cluster does not answer: {_first_line(error)}") from error


def _keep_off_stdout() -> None:
    """Log what Ray prints about its nodes: standard output is dgm's, and may be JSON. Ray has no option for it."""
    from ray._private import worker

    def note(data: Mapping[str, Any], *_: object, **__: object) -> None:
        log.info("ray: %s", str(data.get("lines"))[:_SHOWN])

    worker.print_to_stdstream = note


def _first_line(error: BaseException) -> str:
    """Return the line of an error's text that says most: the exception on the node, else the first one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if _CAUSE.match(line)]
    return next(iter([*causes[-1:], *lines]), type(error).__name__)[:_SHOWN]
