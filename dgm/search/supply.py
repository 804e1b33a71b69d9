"""What a search asks of its models beyond replies: is there money left, and do their providers answer?"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from dgm.errors import Infrastructure, UserError
from dgm.gateway.server import Gateway


class Supply(Protocol):
    """Where the models of a search come from."""

    @property
    def spent(self) -> str:
        """Why no further call can be afforded; empty where one can."""
        ...

    @property
    def refused(self) -> str:
        """Why a provider takes nothing from us any more; empty where all do."""
        ...

    async def outage(self) -> str:
        """Why a provider that failed last does not answer now; empty where none failed, or it answers again."""
        ...


class Endless:
    """Models that cost nothing and are always there."""

    spent = refused = ""

    async def outage(self) -> str:
        """None."""
        return ""


ENDLESS = Endless()


@dataclass(frozen=True, slots=True)
class Lent:
    """The models of a gateway."""

    gateway: Gateway

    @property
    def spent(self) -> str:
        """As the ledger says."""
        return self.gateway.ledger.exhausted

    @property
    def refused(self) -> str:
        """As the gateway was told."""
        return self.gateway.refused

    async def outage(self) -> str:
        """Asks the providers, which costs nothing, if a model failed last."""
        if not self.gateway.down:
            return ""
        try:
            await asyncio.gather(*(model.check() for model in set(self.gateway.models.values())))
        except (Infrastructure, UserError) as error:
            return str(error)
        return ""
