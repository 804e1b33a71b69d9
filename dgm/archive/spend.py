"""What model calls took: in total, by role and model, and per action; a million actions fit in a few megabytes."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass

from dgm.domain import ActionId, Usage


class Spend:
    """The fold of every model call: the one place where money is added up, so that nothing counts twice."""

    def __init__(self) -> None:
        self._total = _Sums()
        self._by: dict[tuple[str, str], _Sums] = {}
        self._calls = array("q")
        self._input = array("q")
        self._output = array("q")
        self._usd = array("d")

    @property
    def total(self) -> Usage:
        """The sum over all calls."""
        return self._total.usage()

    @property
    def by(self) -> Mapping[tuple[str, str], Usage]:
        """Role and model → the sum over their calls."""
        return {who: sums.usage() for who, sums in self._by.items()}

    def add(self, action: ActionId, usage: Usage, who: tuple[str, str]) -> None:
        """Adds one call to its action, to its role and model (``who``), and to the total."""
        mine = self._by.get(who)
        if mine is None:
            mine = self._by[who] = _Sums()
        mine.add(usage)
        self._total.add(usage)
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


@dataclass(slots=True)
class _Sums:
    """A ``Usage`` that grows: a new value for each of a million calls would take most of the time of adding them up."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0
    cached_tokens: int = 0
    written_tokens: int = 0
    reasoning_tokens: int = 0

    def add(self, usage: Usage) -> None:
        self.calls += usage.calls
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.usd += usage.usd
        self.cached_tokens += usage.cached_tokens
        self.written_tokens += usage.written_tokens
        self.reasoning_tokens += usage.reasoning_tokens

    def usage(self) -> Usage:
        return Usage(
            self.calls,
            self.input_tokens,
            self.output_tokens,
            self.usd,
            self.cached_tokens,
            self.written_tokens,
            self.reasoning_tokens,
        )
