"""What the making of one child may still take, over all jobs and questions of one performance.

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
    """One child's; begins when it is made.

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
    def of(cls, limits: LimitSettings) -> Self | None:
        """None where the settings set no limit."""
        own = (limits.child_calls, limits.child_tokens, limits.child_usd, limits.child_s)
        return None if all(limit is None for limit in own) else cls(limits)

    def rest(self, own: CallLimits) -> CallLimits:
        """The limits of the next lease: its own, cut down to what is left."""
        used = sum((lease.usage for lease in self._leases), Usage())
        limits = self._limits
        if limits.child_calls is not None:
            answered = sum(lease.calls for lease in self._leases)
            own = replace(own, calls=min(own.calls, limits.child_calls - answered))
        if limits.child_tokens is not None:
            own = replace(own, tokens=min(own.tokens, limits.child_tokens - used.tokens))
        if limits.child_usd is not None:
            left = limits.child_usd - used.usd
            own = replace(own, usd=left if own.usd is None else min(own.usd, left))
        return own

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
