"""The nodes of a cluster as rows for ``dgm doctor``."""

import asyncio

from dgm.errors import DgmError
from dgm.sandboxes import recipes
from dgm.sandboxes.choose import choose
from dgm.sandboxes.probes import DiagnosisRow
from dgm.sandboxes.ray.cluster import ClusterNode
from dgm.sandboxes.ray.engine import RayEngine
from dgm.sandboxes.ray.image_plans import DOCKER
from dgm.sandboxes.ray.node_use import CALL_S
from dgm.sandboxes.ray.session import describe_difference
from dgm.sandboxes.ray.waiting import within
from dgm.sandboxes.ray.wire import NodeFacts, NodeStock, build_digest, decode
from dgm.sandboxes.ray_address import NAME


async def diagnose_nodes() -> list[DiagnosisRow]:
    """Return a row for each node of the cluster that the environment names; open no sandbox.

    A node that cannot be used does not keep a search from running on the others.
    """
    try:
        engine = choose(NAME)
        assert isinstance(engine, RayEngine)
        nodes = await engine.cluster.nodes()
    except DgmError as error:
        return [DiagnosisRow("nodes", ok=False, detail=str(error))]
    return await asyncio.gather(*(_describe(engine, ident, node) for ident, node in nodes.items()))


async def _describe(engine: RayEngine, ident: str, node: ClusterNode) -> DiagnosisRow:
    name = f"node {node.name}"
    try:
        asked = engine.cluster.keeper(ident).call("describe", engine.scale.node_engine)
        facts = decode(await within(CALL_S, asked, f"the keeper of {node.name}"), NodeFacts)
        images = await _describe_images(engine, ident, node) if facts.engine == DOCKER else ""
    except DgmError as error:
        return DiagnosisRow(name, ok=False, detail=str(error))
    if facts.build != build_digest():
        return DiagnosisRow(name, ok=False, detail=describe_difference("it", facts))
    if facts.problem:
        return DiagnosisRow(name, ok=False, detail=facts.problem)
    spec = recipes.load("python").spec({})
    at_once = int(min(node.cpus // spec.cpus, node.memory_mb // spec.memory_mb))
    return DiagnosisRow(
        name,
        ok=at_once > 0,
        detail=f"{node.cpus:g} processors, {node.memory_mb:,} MB: {at_once} sandboxes of the recipe python at once, by "
        f"{facts.engine}; {facts.sandboxes} open; cache {facts.cache_bytes / 1e6:.0f} of "
        f"{facts.cache_limit / 1e6:.0f} MB{images}",
    )


async def _describe_images(engine: RayEngine, ident: str, node: ClusterNode) -> str:
    asked = engine.cluster.keeper(ident).call("list_images", engine.scale.node_engine, True)
    stock = decode(await within(CALL_S, asked, f"the engine of {node.name}"), NodeStock)
    return (
        f"; {len(stock.tags)} images of tasks, {stock.disk_bytes / 1e9:.1f} of {engine.scale.images_gb:g} GB"
    )
