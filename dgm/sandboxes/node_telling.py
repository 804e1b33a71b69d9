"""The engines or nodes of a run, told to people who watch it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol, runtime_checkable

from dgm.archive.live_nodes import NodeState, remove_live_nodes, write_live_nodes
from dgm.live_telling import TELL_S, tell_changes
from dgm.protocols import SandboxEngine


@runtime_checkable
class _HasNodes(Protocol):
    """An engine whose sandboxes are on several machines."""

    def nodes(self) -> Sequence[NodeState]: ...


@asynccontextmanager
async def tell_nodes(folder: Path, engine: SandboxEngine, every_s: float = TELL_S) -> AsyncIterator[None]:
    """Keep the file of nodes in a run's folder up to date while the context lasts, if the engine has several.

    Args:
        folder: of the run.
        engine: of its sandboxes.
        every_s: seconds between two looks at the nodes.
    """
    if not isinstance(engine, _HasNodes):
        remove_live_nodes(folder)
        yield
        return
    nodes = engine.nodes
    async with tell_changes(
        lambda: tuple(nodes()),
        lambda now: write_live_nodes(folder, now),
        lambda: remove_live_nodes(folder),
        every_s,
    ):
        yield
