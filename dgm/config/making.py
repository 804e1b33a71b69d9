"""The settings of how a child is made: by which operator, from what evidence, and what it must pass."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from dgm.config.section import Count, Positive, Section

Weight = Annotated[float, Field(gt=0, le=1e9)]


class OperatorSettings(Section):
    """Choice of the operator that makes the next child, where ``operator`` names several, and its retries."""

    choice: Literal["fixed", "bandit"] = "fixed"
    """fixed: by ``weights``; bandit: by what each one's children were worth per unit of spend."""
    weights: Mapping[str, Weight] = {}
    """Operator → how often it is chosen, relative to the others, at most 1e9; 1 where it is not named."""
    parts: Literal["round-robin", "bandit"] = "round-robin"
    """Order in which ``module`` takes the parts of the scaffold."""
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    """Further questions to a model whose answer cannot be read."""
    reflections: Annotated[int, Field(ge=0, le=2)] = 2
    """Reviews of a draft by its author, with ``invent``."""
    debugging: Annotated[int, Field(ge=0, le=3)] = 3
    """Repairs of a draft that does not start, with ``invent``."""


class EvidenceSettings(Section):
    """Evidence of an agent's own work, and of others', shown when a child is made."""

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
    """Maximum size of the whole folder; its index names what is left out. Layout 2."""
    prompt_chars: Count = 60_000
    """Maximum length of the evidence that an operator puts into one prompt."""
    transcript_bytes: Count = 60_000
    """Kept of each transcript, from both ends; layout 1."""


class VettingSettings(Section):
    """Further checks that a child must pass."""

    patch: bool = True
    """Its change must go on as a patch."""
    syntax: bool = True
    """Its source must differ from every agent's in more than comments, docstrings and layout."""
    probes: Annotated[int, Field(ge=0, le=10)] = 2
    """Tasks that its parents have always solved; a child that solves none of them is stillborn."""


class GateSettings(Section):
    """Rules that keep a child out, or let it wait for a person."""

    flips: bool = False
    """An agent that lost more of its parents' resolved tasks than it gained has no children."""
    novelty: Literal["off", "similarity", "model"] = "off"
    """Make a child stillborn whose edit is a near copy of another's, by a measure of similarity or by a model that is
    asked about similar edits."""
    novelty_threshold: Annotated[float, Field(gt=0, le=1)] = 0.9
    """Similarity from which two edits count as copies, above 0 up to 1."""
    approve: bool = False
    """Every child waits until a person has said yes or no to it, while the search goes on."""
    approve_s: Positive | None = None
    """Seconds that it waits; default: until a person answers."""
    on_timeout: Literal["reject", "accept"] | None = None
    """Decision on a child that nobody answered for; default: reject."""
