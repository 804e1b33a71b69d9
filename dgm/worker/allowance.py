"""The rest of the limits for making or vetting one child, over all jobs and questions of one performance.

A reply that is served from the journal counts like a paid one. So a repeated expansion is cut off at the same
call.
"""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Self

from dgm.config import LimitSettings
from dgm.domain import Usage
from dgm.errors import AgentFault
from dgm.gateway.lease import CallLimits, Lease

LEAST_S = 1.0
"""Nothing is begun with less time than this, in seconds."""


class Allowance:
    """The allowance of one child, for its making or for its vetting; its time begins at construction.

    All leases together have the limits that the gateway lends to one action, and the settings' further limits
    on a child.

    Attributes:
        turn: held while a lease draws on the allowance, so that two at once cannot both take the rest.
    """

    def __init__(self, limits: LimitSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self._leases: list[Lease] = []
        self.turn = asyncio.Lock()

    @classmethod
    def of_vetting(cls, limits: LimitSettings) -> Self:
        """Create an allowance without the settings' limits on a child's making."""
        making = ("child_calls", "child_tokens", "child_usd", "child_s")
        return cls(limits.model_copy(update=dict.fromkeys(making)))

    def rest(self, own: CallLimits) -> CallLimits:
        """Return the limits of the next lease: the rest of the limits of one action and of a child."""
        used = sum((lease.usage for lease in self._leases), Usage())
        answered = sum(lease.calls for lease in self._leases)
        limits = self._limits
        usd = [limit for limit in (own.usd, limits.child_usd) if limit is not None]
        return replace(
            own,
            calls=min(own.calls, limits.child_calls or own.calls) - answered,
            tokens=min(own.tokens, limits.child_tokens or own.tokens) - used.tokens,
            usd=min(usd) - used.usd if usd else None,
        )

    def takes(self, lease: Lease) -> None:
        """Count the lease's answered calls from here on."""
        self._leases.append(lease)

    def forget_last(self) -> None:
        """Stop counting the last lease: its job is done once more, and gets the same answers."""
        self._leases.pop()

    def seconds(self, own: float) -> float:
        """Return the wall seconds of the next job: its own, at most the rest of the allowance.

        Raises:
            AgentFault: stage ``time``: too little is left to begin.
        """
        if self.late:
            raise AgentFault("time", self.late)
        return min(own, self._left_s)

    @property
    def late(self) -> str:
        """A line saying that the time is over; empty while it is not."""
        limit = self._limits.child_s
        return f"the {limit:g} s that a child may take are over" if self._left_s < LEAST_S else ""

    @property
    def _left_s(self) -> float:
        limit = self._limits.child_s
        return math.inf if limit is None else limit - (self._clock() - self._began)
