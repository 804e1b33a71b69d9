"""The settings of how a child is made: by which operator, from what evidence, and what it must pass."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from dgm.config.section import Count, Positive, Section

Weight = Annotated[float, Field(gt=0, le=1e9)]


class OperatorSettings(Section):
    """Which operator makes the next child, where ``operator`` names several, and how patient they are."""

    choice: Literal["fixed", "bandit"] = "fixed"
    """fixed: by ``weights``; bandit: by what each one's children were worth per unit of spend."""
    weights: Mapping[str, Weight] = {}
    """Operator → how often it is chosen, relative to the others, at most 1e9; 1 where it is not named."""
    parts: Literal["round-robin", "bandit"] = "round-robin"
    """Of ``module``: which part of the scaffold comes next."""
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    """How often a model is asked again whose answer cannot be read."""
    reflections: Annotated[int, Field(ge=0, le=2)] = 2
    """Of ``invent``: how often a draft is looked over by its author."""
    debugging: Annotated[int, Field(ge=0, le=3)] = 3
    """Of ``invent``: how often a draft that does not start is mended."""


class EvidenceSettings(Section):
    """What an agent sees of its own work, and of others', when a child is made."""

    failures: Annotated[int, Field(ge=0)] = 6
    """Unresolved evaluations shown."""
    successes: Annotated[int, Field(ge=0)] = 1
    """Resolved evaluations shown."""
    layout: Literal[1, 2] = 2
    """1: a few files about the first parent alone, as before; 2: a folder with an index, of relatives too."""
    ancestors: Annotated[int, Field(ge=0, le=50)] = 3
    """Ancestors shown, the nearest ones; layout 2."""
    others: Annotated[int, Field(ge=0, le=50)] = 3
    """Further agents shown; layout 2."""
    folder_bytes: Count = 8_000_000
    """Of the whole folder; what does not go in is named in its index. Layout 2."""
    prompt_chars: Count = 60_000
    """Of evidence that an operator puts into one prompt."""
    transcript_bytes: Count = 60_000
    """Kept of each transcript, from both ends; layout 1."""


class VettingSettings(Section):
    """What a child must pass beyond what is always asked."""

    patch: bool = True
    """Its change must go on as a patch."""
    syntax: bool = True
    """Its source must differ from every agent's in more than comments, docstrings and layout."""
    probes: Annotated[int, Field(ge=0, le=10)] = 2
    """Tasks that its parents have always solved; a child that solves none of them is stillborn."""


class GateSettings(Section):
    """What may keep a child out, or wait for a person."""

    flips: bool = False
    """An agent that lost more of its parents' resolved tasks than it gained has no children."""
    novelty: Literal["off", "similarity", "model"] = "off"
    """Whether a child whose edit is a near copy of another's is stillborn, and who says so."""
    novelty_threshold: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Of ``novelty``: how alike two edits are, from 0 to 1, to be called copies."""
    approve: bool = False
    """Every child waits until a person has said yes or no to it, while the search goes on."""
    approve_s: Positive | None = None
    """How long it waits; default: until a person answers."""
    on_timeout: Literal["reject", "accept"] | None = None
    """What becomes of a child that nobody answered for; default: reject."""
