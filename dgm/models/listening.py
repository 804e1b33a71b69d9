"""Listeners for models that are used outside a run: nobody records their lessons, and no agent waits for answers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dgm.domain import Usage


class NullListener:
    """A listener that keeps nothing."""

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Ignore the lesson."""

    def waits(self, model: str, words: str, until: float) -> None:
        """Ignore the wait."""

    def overran(self, model: str, asked: int, billed: int) -> None:
        """Ignore the overrun."""


class NullDelivery:
    """The delivery of a call that no agent waits for."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Enter the wait without any effect."""
        yield

    async def sending(self) -> None:
        """Ignore the start of sending."""

    def pass_on(self, data: bytes) -> None:
        """Discard the data."""

    def take_back(self, wasted: Usage) -> None:
        """Do nothing: no data was handed on."""
