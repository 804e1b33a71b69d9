"""The settings of a search whose sandboxes are on the nodes of a cluster (``docs/many-machines.md``)."""

from typing import Annotated, Literal

from pydantic import Field

from dgm.config.section import Count, Positive, Section


class ScaleSettings(Section):
    """Sandboxes on the nodes of a Ray cluster; without effect elsewhere."""

    node_engine: Literal["auto", "docker", "bubblewrap"] = "auto"
    """The engine that opens sandboxes on each node; auto = docker, else bubblewrap."""
    cache_mb: Count = 2000
    """Disk of the folders that a node keeps for further sandboxes (agents' packages, evidence, tools), in MB; what was
    not used for the longest time goes first."""
    lease_s: Annotated[float, Field(ge=3, le=3600)] = 30.0
    """Seconds without a word from the head after which a node ends the head's sandboxes."""
    wait_s: Positive = 3600.0
    """Maximum seconds that a sandbox waits for a node with room."""
