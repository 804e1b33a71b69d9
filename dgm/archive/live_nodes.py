"""The engines or nodes on which a run's sandboxes are now, in a file beside the log for other processes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dgm.archive.live_file import remove_live_file, write_live_file
from dgm.bounded_reading import read_json
from dgm.errors import ArchiveCorrupt

FILE = "nodes.json"
_MOST = 10_000
"""Maximum number of nodes that are read."""
_CHARACTERS = 500
"""Maximum length of a text that is read."""


@dataclass(frozen=True, slots=True)
class NodeState:
    """One engine, or one node of a cluster, at one moment of a session."""

    name: str
    """Address of the engine, or name of the node."""
    slots: int
    """Sandboxes of one processor that fit there at once."""
    busy: int
    """Sandboxes that are open there."""
    opened: int
    """Sandboxes that were opened there in this session."""
    failures: int
    """Times that it failed in this session."""
    images: int
    """Images that were built or pulled there in this session, for its sandboxes."""
    problem: str = ""
    """Why no sandbox is opened there now; empty if it is used."""


def write_live_nodes(folder: Path, nodes: Sequence[NodeState]) -> None:
    """Put the nodes into the run's folder, in one step.

    Raises:
        OSError: the folder cannot be written.
    """
    write_live_file(folder / FILE, {"nodes": [asdict(node) for node in nodes]})


def read_live_nodes(folder: Path) -> Sequence[NodeState]:
    """Return the nodes in a run's folder; none if they cannot be read."""
    try:
        return [_read_node(record) for record in read_json(folder / FILE)["nodes"][:_MOST]]
    except (OSError, ArchiveCorrupt, ValueError, KeyError, TypeError, AttributeError):
        return ()


def remove_live_nodes(folder: Path) -> None:
    """Remove the file where there is one and the folder can be written."""
    remove_live_file(folder / FILE)


def _read_node(record: Any) -> NodeState:  # noqa: ANN401  (JSON that may be a stranger's)
    return NodeState(
        name=str(record["name"])[:_CHARACTERS],
        slots=int(record["slots"]),
        busy=int(record["busy"]),
        opened=int(record["opened"]),
        failures=int(record["failures"]),
        images=int(record["images"]),
        problem=str(record["problem"])[:_CHARACTERS],
    )
