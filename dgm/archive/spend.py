"""What model calls took: in total, by role and model, and per action; a million actions fit in a few megabytes."""

from array import array
from collections.abc import Mapping
from dataclasses import fields
from operator import add, attrgetter
from typing import Any

from dgm.domain import ActionId, Usage

_amounts = attrgetter(*(each.name for each in fields(Usage)))
_NOTHING = _amounts(Usage())


class Spend:
    """The fold of every model call: the one place where money is added up, so that nothing counts twice."""

    def __init__(self) -> None:
        # Fields of a Usage in their order: a Usage for each of a million sums would take most of the time.
        self._total: tuple[Any, ...] = _NOTHING
        self._by: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._calls = array("q")
        self._input = array("q")
        self._output = array("q")
        self._usd = array("d")

    @property
    def total(self) -> Usage:
        """The sum over all calls."""
        return Usage(*self._total)

    @property
    def by(self) -> Mapping[tuple[str, str], Usage]:
        """Role and model → the sum over their calls."""
        return {who: Usage(*sums) for who, sums in self._by.items()}

    def add(self, action: ActionId, usage: Usage, who: tuple[str, str]) -> None:
        """Adds one call to its action, to its role and model (``who``), and to the total."""
        amounts = _amounts(usage)
        self._by[who] = tuple(map(add, self._by.get(who, _NOTHING), amounts))
        self._total = tuple(map(add, self._total, amounts))
        missing = action + 1 - len(self._calls)
        if missing > 0:
            for column in (self._calls, self._input, self._output):
                column.extend([0] * missing)
            self._usd.extend([0.0] * missing)
        self._calls[action] += usage.calls
        self._input[action] += usage.input_tokens
        self._output[action] += usage.output_tokens
        self._usd[action] += usage.usd

    def of(self, action: ActionId) -> Usage:
        """The sum over one action's calls; zero for an action that made none. Only tokens in all, no finer counts."""
        if not 0 <= action < len(self._calls):
            return Usage()
        return Usage(self._calls[action], self._input[action], self._output[action], self._usd[action])
