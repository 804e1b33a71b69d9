"""For models that are asked outside of a run: nobody is told what they learn, and no agent waits for their answers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dgm.domain import Usage


class Silent:
    """A listener that keeps nothing."""

    def learned(
        self, model: str, abilities: Mapping[str, Any], words: str, usage: Usage | None = None
    ) -> None:
        """Keep nothing."""

    def waits(self, model: str, words: str, until: float) -> None:
        """Keep nothing."""

    def overran(self, model: str, asked: int, billed: int) -> None:
        """Keep nothing."""


class Unheard:
    """The delivery of a call that no agent waits for."""

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait."""
        yield

    async def sending(self) -> None:
        """Note nothing."""

    def pass_on(self, data: bytes) -> None:
        """Hand nothing on."""

    def take_back(self, wasted: Usage) -> None:
        """Take nothing back."""
