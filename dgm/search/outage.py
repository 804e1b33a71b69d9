"""Outages of model providers and of the infrastructure: what is known of them, and how long to wait."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from dgm.domain import ActionId
from dgm.errors import Infrastructure, UserError
from dgm.gateway.server import Gateway

LONGEST_WAIT_S = 60.0


class ModelAvailability(Protocol):
    """The availability of a search's models."""

    @property
    def spent(self) -> str:
        """Why no further call can be afforded; empty if one can."""
        ...

    @property
    def refused(self) -> str:
        """Why a provider refuses all our calls, if it never answered in this session; else empty."""
        ...

    @property
    def halted(self) -> str:
        """Why nothing may be started until a provider answers again; empty if nothing is known to be wrong."""
        ...

    @property
    def wait_s(self) -> float:
        """Seconds until the wait is over that a provider asked for; 0 without one."""
        ...

    async def outage(self) -> str:
        """Return why a provider that failed last does not answer now; empty if all answer."""
        ...


class AlwaysAvailable:
    """Models that cost nothing and are always there."""

    spent = refused = halted = ""
    wait_s = 0.0

    async def outage(self) -> str:
        """Return an empty text: there is no outage."""
        return ""


ALWAYS_AVAILABLE = AlwaysAvailable()


@dataclass(frozen=True, slots=True)
class GatewayAvailability:
    """The models of a gateway."""

    gateway: Gateway

    @property
    def spent(self) -> str:
        """The ledger's reason why no further call can be afforded; empty if one can."""
        return self.gateway.ledger.exhausted

    @property
    def refused(self) -> str:
        """The provider's refusal, if no call was answered in this session; else empty."""
        return "" if self.gateway.caller.answered else self.gateway.caller.refused

    @property
    def halted(self) -> str:
        """A refusal of the account in mid-session, or a long wait that a provider asked for."""
        caller = self.gateway.caller
        return caller.refused or self._waits

    async def outage(self) -> str:
        """Ask the providers by a small call each, if one failed last and asked for no wait."""
        caller = self.gateway.caller
        if not caller.trouble:
            return ""
        if self._waits:
            return self._waits
        try:
            await self.gateway.check_models()
        except (Infrastructure, UserError) as error:
            return str(error)
        return ""

    @property
    def wait_s(self) -> float:
        """Seconds until the wait is over that a provider asked for; 0 without one."""
        wait = self.gateway.caller.waits
        return max(wait.until - time.time(), 0.0) if wait is not None else 0.0

    @property
    def _waits(self) -> str:
        """The wait that a provider asked for and that is not over; empty if there is none."""
        return str(self.gateway.caller.waits) if self.wait_s else ""


class Backoff:
    """Counts failures without a success in between; waits 1, 2, 4 … up to 60 s after each of them.

    One failed engine fails every worker at once, so only failures that start a new wait lengthen it. An action
    is abandoned when it failed ``tries`` times in this session although others succeeded meanwhile. In an outage
    no action is abandoned.
    """

    def __init__(self, failures_in_a_row: int, tries: int, clock: Callable[[], float]) -> None:
        self._limit = failures_in_a_row
        self._tries = tries
        self._clock = clock
        self._failures = 0
        self._waits = 0
        self._until = 0.0
        self._successes = 0
        self._failed: dict[ActionId, tuple[int, int]] = {}
        """Action → its failures, and the number of all successes before the first of them."""
        self.on_trial = False
        """Whether one action is to show, alone, that a pause is over."""
        self.unexplained = False
        """Whether the last pause ended at once, because every provider answered by then."""
        self.last_reason = ""
        self.last_failed: ActionId | None = None

    def record_success(self) -> None:
        """Reset the failures and the wait."""
        self._successes += 1
        self._failures = self._waits = 0
        self._until = 0.0
        self.on_trial = self.unexplained = False
        self.last_failed = None

    def record_failure(self, action: ActionId, reason: str, *, general: bool = True) -> None:
        """Record a failure that was not an agent's fault, and start a wait.

        Args:
            action: the action that failed.
            reason: why.
            general: whether other actions may fail of it, too, so that a wait helps.
        """
        failures, before = self._failed.get(action, (0, self._successes))
        self._failed[action] = (failures + 1, before)
        if not general or self.should_give_up(action):
            return
        self.last_reason, self.last_failed = reason, action
        self._failures += 1
        if self.wait_s() == 0.0:
            self._until = self._clock() + min(LONGEST_WAIT_S, 2.0**self._waits)
            self._waits += 1

    def should_give_up(self, action: ActionId) -> bool:
        """Return whether the action failed too often while others succeeded."""
        failures, before = self._failed.get(action, (0, self._successes))
        return failures >= self._tries and self._successes > before

    def wait_s(self) -> float:
        """Return the seconds until something may be started again; 0.0 when it may."""
        return max(0.0, self._until - self._clock())

    @property
    def exhausted(self) -> bool:
        """Whether it is time to pause, or to stop and tell the user."""
        return self._failures >= self._limit

    def end_pause(self, *, unexplained: bool = False) -> None:
        """Let one action start at once; its failure begins a new pause.

        Args:
            unexplained: whether nothing was found wrong with the providers.
        """
        self._failures, self._waits, self._until = self._limit - 1, 0, 0.0
        self.on_trial, self.unexplained = True, unexplained
