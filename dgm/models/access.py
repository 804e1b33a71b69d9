"""Access data of a hosted model, and its retry policy."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from dgm.models.pricing import REPLY_TOKENS
from dgm.protocols import Sleep

LONGEST_WAIT_S = 60.0
"""Maximum wait in seconds of a call of a run, so that no sandbox is held open."""


@dataclass(frozen=True, slots=True)
class Retries:
    """The number of tries of a call, and the delays between them."""

    tries: int = 8
    """Maximum number of tries, the first included."""
    backoff_s: float = 1.0
    """Seconds before the second try; doubled for each further one, up to 60 s."""
    sleep: Sleep = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], float] = time.time
    rng: Random = field(default_factory=Random)
    """Random stream for jitter only: no decision of a search depends on it."""


@dataclass(frozen=True, slots=True)
class Access:
    """Settings for requests to a hosted model, beside its connection."""

    key_env: str = ""
    """Environment variable of the key, for messages; empty: there is no key."""
    secrets: tuple[str, ...] = ()
    """Secrets that no message and no answer may hold."""
    timeout_s: float = 600.0
    """Maximum seconds without progress of an answer."""
    stream: bool = True
    """Whether the provider may be asked to stream."""
    tools: bool = True
    """Whether agents call tools; decides the question of the check."""
    reasoning_effort: str | None = None
    """Effort that is added to requests that name none."""
    always: Mapping[str, Any] = field(default_factory=dict)
    """Keys of every request, whatever the agent asks for."""
    output_tokens: int = REPLY_TOKENS
    """Output limit of the check, equal to that of agents."""
    half_context: bool = False
    """A reply may fill at most half of the context that the server tells."""
    forms: bool = False
    """Permission for dgm's own questions to ask for an answer by a JSON schema."""
    longest_wait_s: float = LONGEST_WAIT_S
    """Maximum wait in seconds at the provider's request; one that asks for more fails the call, and pauses a run."""
