"""What the making of one child, or its vetting, may still take, over all jobs and questions of one performance.

A reply that is served from the journal counts like one that is paid for, so that an expansion that is performed again
is cut off at the same call.
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
"""With less time than this nothing is begun."""


class Allowance:
    """One child's, for its making or for its vetting; begins when it is made.

    All leases together have what the gateway lends to one action, and what the settings say of a child beside that.

    Attributes:
        turn: held by whoever takes of it, so that two at once cannot both take the rest.
    """

    def __init__(self, limits: LimitSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._began = clock()
        self._leases: list[Lease] = []
        self.turn = asyncio.Lock()

    @classmethod
    def of_vetting(cls, limits: LimitSettings) -> Self:
        """Without what the settings say of a child's making."""
        making = ("child_calls", "child_tokens", "child_usd", "child_s")
        return cls(limits.model_copy(update=dict.fromkeys(making)))

    def rest(self, own: CallLimits) -> CallLimits:
        """The limits of the next lease: what is left of those of one action, and of those of a child."""
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
        """From here on, what the lease is answered counts."""
        self._leases.append(lease)

    def seconds(self, own: float) -> float:
        """Wall seconds of the next job: its own, cut down to what is left.

        Raises:
            AgentFault: stage ``time``: nothing is left worth beginning with.
        """
        if self.late:
            raise AgentFault("time", self.late)
        return min(own, self._left_s)

    @property
    def late(self) -> str:
        """That the time is over, in a line; empty while it is not."""
        limit = self._limits.child_s
        return f"the {limit:g} s that a child may take are over" if self._left_s < LEAST_S else ""

    @property
    def _left_s(self) -> float:
        limit = self._limits.child_s
        return math.inf if limit is None else limit - (self._clock() - self._began)
