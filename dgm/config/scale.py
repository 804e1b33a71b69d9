"""The settings of a search whose sandboxes are on the nodes of a cluster (``docs/many-machines.md``)."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from dgm.config.section import Count, Positive, Section

_REGISTRY = re.compile(r"([A-Za-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]+)?(/[a-z0-9._-]+)*")


def _check_registry(text: str) -> str:
    if text and _REGISTRY.fullmatch(text) is None:
        raise ValueError("write HOST[:PORT][/PATH], without https:// and without the name of an image")
    return text


class ScaleSettings(Section):
    """Sandboxes on the nodes of a Ray cluster."""

    node_engine: Literal["auto", "docker", "bubblewrap"] = "auto"
    """The engine that opens sandboxes on each node; auto = docker, else bubblewrap."""
    cache_mb: Count = 2000
    """Disk of the folders that a node keeps for further sandboxes (agents' packages, evidence, tools), in MB; what was
    not used for the longest time goes first."""
    registry: Annotated[str, AfterValidator(_check_registry)] = ""
    """A registry, ``HOST[:PORT][/PATH]``, that nodes ask first for images of tasks, also for those that dgm makes. All
    nodes take the same digest."""
    images_gb: Positive = 120.0
    """Disk of the images of tasks that a node pulled or made, in GB; the longest unused goes first."""
    lease_s: Annotated[float, Field(ge=3, le=3600)] = 30.0
    """Seconds without a word from the head after which a node ends the head's sandboxes."""
    demand: Annotated[int, Field(ge=0, le=100_000)] = 0
    """Sandboxes for which a cluster that scales itself is asked to have room as long as a search uses it; a sandbox
    that no node has room for then waits for a new node. 0: nothing is asked, and the cluster is taken as it is."""
    wait_s: Positive = 3600.0
    """Maximum seconds that a sandbox waits for a node with room."""
