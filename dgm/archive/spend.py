"""Usage of model calls: in total, by role and model, and per action. A million actions fit in a few megabytes."""

from array import array
from collections.abc import Mapping
from dataclasses import fields
from operator import add, attrgetter
from types import MappingProxyType
from typing import Any

from dgm.archive.events import CallBooked, CallStarted, ModelCalled, ModelLearned, ModelNoted
from dgm.domain import NO_ACTION, ActionId, Usage

_amounts = attrgetter(*(each.name for each in fields(Usage)))
_NOTHING = _amounts(Usage())
CHECK_ROLE = "check"
"""The role of checks of models, which belong to no action."""
Key = tuple[ActionId, int]
"""Action and number of a call."""


class Spend:
    """The fold of every model call: the only place that sums money, so that nothing counts twice."""

    def __init__(self) -> None:
        # Fields of a Usage in order: creating a Usage for each of a million sums would take most of the time.
        self._total: tuple[Any, ...] = _NOTHING
        self._by: dict[tuple[str, str], tuple[Any, ...]] = {}
        self._calls = array("q")
        self._input = array("q")
        self._output = array("q")
        self._usd = array("d")
        self._open: dict[Key, CallStarted] = {}
        self._cut: dict[Key, CallBooked] = {}

    @property
    def open(self) -> Mapping[Key, CallStarted]:
        """Started calls without an end; they are not in the sums."""
        return MappingProxyType(self._open)

    @property
    def cut(self) -> Mapping[Key, CallBooked]:
        """Calls cut off by the death of a process, until their repetition is answered.

        The sums hold their worst case.
        """
        return MappingProxyType(self._cut)

    def apply(self, event: ModelCalled | CallStarted | CallBooked | ModelLearned | ModelNoted) -> None:
        """Fold one event in."""
        match event:
            case ModelCalled(action, number, model, role):
                self.called(action, number, event.usage, (role, model))
            case CallStarted(action, number):
                self._open[action, number] = event
            case CallBooked(action, number, model, role, usage, still_open):
                self._open.pop((action, number), None)
                self._cut.pop((action, number), None)
                if still_open:
                    self._cut[action, number] = event
                self.add(action, usage, (role, model))
            case ModelLearned(model, usage=usage) if usage.calls:
                self.add(NO_ACTION, usage, (CHECK_ROLE, model))
            case _:
                pass

    def called(self, action: ActionId, number: int, usage: Usage, who: tuple[str, str]) -> None:
        """Fold in an answered call; ``who`` is its role and model."""
        if self._open:
            self._open.pop((action, number), None)
        self.add(action, usage, who)

    @property
    def total(self) -> Usage:
        """The sum over all calls."""
        return Usage(*self._total)

    @property
    def by(self) -> Mapping[tuple[str, str], Usage]:
        """Role and model → the sum over their calls."""
        return {who: Usage(*sums) for who, sums in self._by.items()}

    def add(self, action: ActionId, usage: Usage, who: tuple[str, str]) -> None:
        """Add one call to its action, to its role and model (``who``), and to the total."""
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
        """Return the sum over one action's calls; zero if it made none. Token details are not kept."""
        if not 0 <= action < len(self._calls):
            return Usage()
        return Usage(self._calls[action], self._input[action], self._output[action], self._usd[action])
