"""The availability of a search's models: whether money is left, and whether their providers answer."""

import time
from dataclasses import dataclass
from typing import Protocol

from dgm.errors import Infrastructure, UserError
from dgm.gateway.server import Gateway


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


class FreeModels:
    """Models that cost nothing and are always there."""

    spent = refused = halted = ""
    wait_s = 0.0

    async def outage(self) -> str:
        """Return an empty text: there is no outage."""
        return ""


ENDLESS = FreeModels()


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
