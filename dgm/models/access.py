"""What a hosted model is asked with, and how often."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from dgm.protocols import Sleep


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is made, and how soon again."""

    tries: int = 8
    """The first included."""
    backoff_s: float = 1.0
    """Before the second try; doubled for each further one, up to 60 s."""
    sleep: Sleep = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    rng: Random = field(default_factory=Random)
    """For jitter only: no decision of a search hangs on it."""


@dataclass(frozen=True, slots=True)
class Access:
    """What a hosted model is asked with, beside its connection."""

    key_env: str = ""
    """Environment variable of the key, for messages; empty: there is no key."""
    secrets: tuple[str, ...] = ()
    """No message and no answer holds them."""
    timeout_s: float = 600.0
    """Without progress of an answer."""
    stream: bool = True
    """Whether the provider may be asked to stream."""
    tools: bool = True
    """Whether agents call tools; decides what the check asks."""
    reasoning_effort: str | None = None
    """Put into requests that name none."""
    always: Mapping[str, Any] = field(default_factory=dict)
    """Keys of every request, whatever the agent asks for."""
    output_tokens: int = 16_000
    """The limit of output that the check asks for, as agents do."""
