"""The settings of how a child is made."""

from typing import Annotated

from pydantic import Field

from dgm.config.section import Count, Section


class EvidenceSettings(Section):
    """What an agent sees of its own work when it improves itself."""

    failures: Annotated[int, Field(ge=0)] = 6
    """Unresolved evaluations shown."""
    successes: Annotated[int, Field(ge=0)] = 1
    """Resolved evaluations shown."""
    transcript_bytes: Count = 60_000
    """Kept of each transcript, from both ends."""
