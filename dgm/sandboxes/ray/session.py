"""The time for which this process uses the nodes of a cluster: their leases, the door to the gateway, who is fit.

A session belongs to one event loop. It begins with the first sandbox, and ends when none was open for a while or with
the loop.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from dgm.config import ScaleSettings
from dgm.errors import DgmError, Infrastructure
from dgm.sandboxes.ray.cluster import Cluster, ClusterNode, HostNeeds
from dgm.sandboxes.ray.door import Door, Link, read_certificate
from dgm.sandboxes.ray.keeper import NODE, SESSION
from dgm.sandboxes.ray.node_counts import NodeCounts
from dgm.sandboxes.ray.node_use import NodeUse
from dgm.sandboxes.ray.waiting import stop
from dgm.sandboxes.ray.wire import HeadSession, NodeFacts, build_digest, decode, encode

LINGERS_S = 20.0
"""Seconds without a sandbox after which the nodes are let go."""
REST_S = 30.0
"""Seconds for which a node that failed is left alone, while others are there."""
UNREADY_S = 300.0
"""Seconds for which a node on which dgm does not start is left alone."""
_FAILURES = 2
"""Sandboxes of a node one after the other in which its engine fails before the node is left alone."""

log = logging.getLogger(__name__)


class ClusterSession:
    """The nodes in use; run ``keep`` beside it."""

    def __init__(
        self,
        cluster: Cluster,
        scale: ScaleSettings,
        incarnation: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Use nothing yet.

        Args:
            cluster: whose nodes are used.
            scale: settings of the run.
            incarnation: of this process, from its last session; 0: there was none.
            clock: seconds.

        Raises:
            UserError: the variables that name the head's certificate are wrong.
        """
        self.ident = secrets.token_hex(8)
        self.loop = asyncio.get_running_loop()
        self.open_sandboxes = 0
        self._cluster = cluster
        self._scale = scale
        self._clock = clock
        self._door = Door(cluster.head_host, read_certificate(os.environ))
        self._uses: dict[str, NodeUse] = {}
        self._resting: dict[str, float] = {}
        """Node → time until which it is left alone."""
        self._unfit: dict[str, str] = {}
        """Node → why its sandboxes would not compare."""
        self._largest = HostNeeds(0.0, 0)
        """Processors and memory of the sandboxes that the cluster was asked for."""
        self._failures: dict[str, int] = {}
        """Node → sandboxes in which its engine failed, since the last one in which it did not."""
        self._dead: set[str] = set()
        self.counts = NodeCounts()
        """Counts of what the nodes do for this process, for people."""
        self.incarnation = incarnation
        self._entering = asyncio.Lock()
        self._began = asyncio.Event()
        self._failed: DgmError | None = None
        self._ending = False
        self._used_at = clock()
        self.keeping = asyncio.create_task(self._keep(), name="use of a cluster")

    async def begin(self) -> None:
        """Wait until the session can be used.

        Raises:
            Infrastructure: the cluster does not answer, or no node of it is fit.
        """
        await self._began.wait()
        if self._failed is not None:
            raise Infrastructure(str(self._failed)) from self._failed

    @property
    def is_over(self) -> bool:
        """True if the session has ended, so that no further sandbox can be opened in it."""
        return self._ending or self._failed is not None or self.keeping.done()

    @property
    def avoided(self) -> Collection[str]:
        """Ids of the nodes on which no sandbox should be opened now."""
        now = self._clock()
        return [*self._unfit, *(node for node, until in self._resting.items() if until > now)]

    @property
    def uses(self) -> Mapping[str, NodeUse]:
        """The nodes in use by id."""
        return self._uses

    @property
    def unfit(self) -> Mapping[str, str]:
        """Nodes whose dgm is another one → what differs."""
        return self._unfit

    async def enter(self, node: str) -> NodeUse | None:
        """Return the use of a node; None if its dgm is another one.

        Raises:
            Infrastructure: it is lost.
        """
        async with self._entering:
            if node in self._unfit:
                return None
            if node not in self._uses:
                await self._enter(node, await self._cluster.nodes())
            return self._uses.get(node)

    async def enter_new(self) -> None:
        """Begin to use nodes that joined the cluster; leave those alone that cannot be used."""
        async with self._entering:
            nodes = await self._cluster.nodes()
            known = {*self._uses, *self.avoided}
            for node in [each for each in nodes if each not in known]:
                await self._try_entering(node, nodes)

    async def admit(self, node: str, sandbox: str, run: str) -> NodeUse | None:
        """Enter a sandbox that is about to be opened on a node; None if the node's dgm is another one.

        Raises:
            Infrastructure: the node is lost, or a newer process of dgm works on the run.
        """
        use = await self.enter(node)
        if use is None:
            return None
        try:
            decode(await use.ask("admit", self.ident, sandbox, run), str)
        except Infrastructure as error:
            # Where this process was held up, its lease is over, and the node takes it again.
            await self._drop(node, use, error)
            use = await self.enter(node)
            if use is not None:
                decode(await use.ask("admit", self.ident, sandbox, run), str)
        return use

    async def confirm(self, node: str, use: NodeUse) -> None:
        """Make sure that a node has had its lease without a break, so that nothing there was ended meanwhile.

        Raises:
            Infrastructure: it may have ended its sandboxes; what they said last counts for nothing.
        """
        if self._uses.get(node) is use and self._clock() - use.renewed_at >= self._scale.lease_s:
            try:
                await self._renew_now(use)
            except Infrastructure as error:
                await self._drop(node, use, error)
        if self._uses.get(node) is not use:
            raise Infrastructure(f"{use.node.name} was out of reach for longer than its lease")

    async def ask_for_room(self, needs: HostNeeds) -> None:
        """Ask the cluster for room for as many of the largest sandboxes so far as the settings say.

        Raises:
            Infrastructure: the cluster does not answer.
        """
        known = self._largest
        largest = HostNeeds(max(needs.cpus, known.cpus), max(needs.memory_mb, known.memory_mb))
        if self._scale.demand and largest != known:
            self._largest = largest
            await self._cluster.ask_for_room(largest, self._scale.demand)

    async def open_link(self, use: NodeUse, target: Path) -> Link:
        """Return a node's way to a unix socket of this machine."""
        known = use.links.get(target)
        if known is None or known.pipe.broken:
            if known is not None:
                await self._door.close_link(known)
            use.links[target] = known = self._door.open_link(target)
        return known

    def rest(self, node: str, why: str) -> None:
        """Leave a node alone for a while, and enter it anew afterwards."""
        now = self._clock()
        others = [each for each in self._uses if each != node and self._resting.get(each, 0.0) <= now]
        if others:
            self._resting[node] = now + REST_S
        if node in self._uses:
            self.counts.note_failure(node, self._uses[node].node, why)
        log.warning("a node failed%s: %s", f"; left alone for {REST_S:.0f} s" if others else "", why)

    def note_end(self, node: str, failure: str) -> None:
        """Note the end of a sandbox; leave a node alone whose engine failed in two sandboxes one after the other.

        Args:
            node: where it was.
            failure: what the engine said when it failed; empty: it did not. An agent can bring about one.
        """
        self._failures[node] = self._failures.get(node, 0) + 1 if failure else 0
        if self._failures[node] >= _FAILURES and node in self._uses:
            self.rest(node, f"{self._uses[node].node.name}: {failure}")

    async def forget_lost(self) -> None:
        """Forget the nodes that are dead."""
        alive = await self._cluster.nodes()
        for node in [each for each in self._uses if each not in alive]:
            log.warning("the node %s is lost; what ran on it is done again", self._uses[node].node.name)
            self._dead.add(node)
            self.counts.note_failure(node, self._uses[node].node, "the node is lost", is_lost=True)
            await self._leave(self._uses.pop(node))

    async def reap(self, labels: Mapping[str, str]) -> int:
        """Remove the sandboxes of all nodes that carry the labels; return their number."""
        self.note_use(0)
        removed = 0
        for node, use in list(self._uses.items()):
            try:
                removed += decode(await use.ask("reap", dict(labels), self._scale.node_engine), int)
            except Infrastructure as error:
                self.rest(node, f"what is left on {use.node.name} cannot be removed: {error}")
        return removed

    def note_use(self, opened: int) -> None:
        """Count a sandbox that is opened (1) or closed (-1); 0: the nodes are used all the same."""
        self.open_sandboxes += opened
        self._used_at = self._clock()

    async def _keep(self) -> None:
        """Hold the leases until no sandbox was open for a while."""
        try:
            async with self._door:
                try:
                    await self._enter_all()
                except DgmError as error:
                    self._failed = error
                    return
                finally:
                    self._began.set()
                try:
                    while self.open_sandboxes or self._clock() - self._used_at < LINGERS_S:
                        await asyncio.sleep(1.0)
                finally:
                    self._ending = True
                    await self._finish()
        except Infrastructure as error:
            self._failed = error
            self._began.set()

    async def _enter_all(self) -> None:
        nodes = await self._cluster.nodes()
        if not nodes and not self._scale.demand:
            raise Infrastructure("the cluster has no node with processors that is alive")
        if not self.incarnation:
            self.incarnation = await self._next_incarnation(nodes)
        failed = await asyncio.gather(*(self._try_entering(node, nodes) for node in nodes))
        if nodes and not self._uses:
            said = "; ".join([*filter(None, failed), *self._unfit.values()])
            raise Infrastructure(f"no node of the cluster can be used: {said}")

    async def _next_incarnation(self, nodes: Mapping[str, ClusterNode]) -> int:
        """Return a number higher than any that the nodes have seen, whatever their clocks say."""
        uses = [NodeUse(nodes[node], self._cluster.keeper(node)) for node in nodes]
        asked = (use.ask("describe", self._scale.node_engine) for use in uses)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        newest = 0
        for answer in answers:
            with contextlib.suppress(Infrastructure):
                newest = max(
                    newest, 0 if isinstance(answer, BaseException) else decode(answer, NodeFacts).newest
                )
        return max(newest + 1, int(time.time()))

    async def _try_entering(self, node: str, nodes: Mapping[str, ClusterNode]) -> str:
        """Begin to use a node; where it fails, leave it alone and return why."""
        try:
            await self._enter(node, nodes)
        except Infrastructure as error:
            self._resting[node] = self._clock() + UNREADY_S
            self.counts.note_failure(node, nodes[node], str(error), is_lost=True)
            log.warning("%s is not used: %s", nodes[node].name, error)
            return str(error)
        return ""

    async def _enter(self, node: str, nodes: Mapping[str, ClusterNode]) -> None:
        """Begin to use a node, unless its dgm is another one.

        Raises:
            Infrastructure: it is lost.
        """
        if node not in nodes:
            raise Infrastructure("a node of the cluster was lost while a sandbox was to be opened on it")
        use = NodeUse(nodes[node], self._cluster.keeper(node), self.ident, self._scale.node_engine)
        facts = decode(await use.ask("describe", self._scale.node_engine), NodeFacts)
        if facts.build != build_digest():
            self._unfit[node] = describe_difference(nodes[node].name, facts)
            self.counts.note_failure(node, nodes[node], self._unfit[node], is_lost=True)
            log.warning("%s", self._unfit[node])
            return
        if facts.problem:
            log.warning("%s opens no sandboxes now: %s", nodes[node].name, facts.problem)
        use.engine = facts.engine
        head = HeadSession(
            self.ident,
            self.incarnation,
            self._scale.lease_s,
            self._scale.cache_mb * 2**20,
            self._scale.node_engine,
            self._scale.registry,
            int(self._scale.images_gb * 10**9),
            self._scale.demand > 0,
        )
        use.renewed_at = self._clock()
        decode(await use.ask("begin", encode(head)), str)
        # A dead node may stand on the same machine as one that took its place.
        for dead in self._dead:
            await use.ask("reap", {SESSION: self.ident, NODE: dead}, self._scale.node_engine)
        self._uses[node] = use
        self.counts.note_node(node, use.node)
        use.renewing = asyncio.create_task(self._renew(node, use), name="lease of a node")

    async def _renew(self, node: str, use: NodeUse) -> None:
        """Hold the lease of a node; where it is lost, the next sandbox that is placed there enters the node anew."""
        while self._uses.get(node) is use:
            await asyncio.sleep(self._scale.lease_s / 4)
            try:
                await self._renew_now(use)
            except Infrastructure as error:
                use.renewing = None
                await self._drop(node, use, error)

    async def _renew_now(self, use: NodeUse) -> None:
        asked_at = self._clock()
        decode(await use.ask("renew", self.ident), str)
        use.renewed_at = asked_at

    async def _drop(self, node: str, use: NodeUse, why: Exception) -> None:
        if self._uses.get(node) is use:
            log.warning("the lease of %s is lost: %s", use.node.name, why)
            self.counts.note_failure(node, use.node, f"its lease is lost: {why}", is_lost=True)
            del self._uses[node]
            await self._leave(use)

    async def _leave(self, use: NodeUse) -> None:
        if use.renewing is not None:
            await stop(use.renewing)
        for link in use.links.values():
            await self._door.close_link(link)
        use.links.clear()

    async def _finish(self) -> None:
        if self._largest.cpus:
            try:
                await self._cluster.ask_for_room(self._largest, 0)
            except Infrastructure as error:
                log.warning("the wish for room in the cluster cannot be withdrawn: %s", error)
        # Meanwhile a lease may be lost, and its node dropped.
        for use in list(self._uses.values()):
            await self._leave(use)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGERS_S):
                await asyncio.gather(
                    *(use.ask("finish", self.ident) for use in self._uses.values()), return_exceptions=True
                )


def describe_difference(name: str, facts: NodeFacts) -> str:
    """Return what is wrong with a node whose dgm is another one."""
    return (
        f"{name} has another dgm ({facts.version}, build {facts.build}; the head has build {build_digest()}), and its "
        "verdicts would not compare: install the same one there, then 'ray stop' and 'ray start' it"
    )
