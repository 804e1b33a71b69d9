"""Usage of model calls: in total, by role and model, and per action."""

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
        self._of: dict[ActionId, tuple[Any, ...]] = {}
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

    @property
    def total(self) -> Usage:
        """The sum over all calls."""
        return Usage(*self._total)

    @property
    def by(self) -> Mapping[tuple[str, str], Usage]:
        """Role and model → the sum over their calls."""
        return {who: Usage(*sums) for who, sums in self._by.items()}

    def of(self, action: ActionId) -> Usage:
        """Return the sum over one action's calls; zero if it made none. Token details are not kept."""
        return Usage(*self._of.get(action, ())[:4])

    def apply(self, event: ModelCalled | CallStarted | CallBooked | ModelLearned | ModelNoted) -> None:
        """Fold one event in."""
        match event:
            case ModelCalled(action, number, model, role):
                self._open.pop((action, number), None)
                self._add(action, event.usage, (role, model))
            case CallStarted(action, number):
                self._open[action, number] = event
            case CallBooked(action, number, model, role, usage, still_open):
                self._open.pop((action, number), None)
                self._cut.pop((action, number), None)
                if still_open:
                    self._cut[action, number] = event
                self._add(action, usage, (role, model))
            case ModelLearned(model, usage=usage) if usage.calls:
                self._add(NO_ACTION, usage, (CHECK_ROLE, model))
            case _:
                pass

    def _add(self, action: ActionId, usage: Usage, who: tuple[str, str]) -> None:
        amounts = _amounts(usage)
        self._total = tuple(map(add, self._total, amounts))
        self._by[who] = tuple(map(add, self._by.get(who, _NOTHING), amounts))
        self._of[action] = tuple(map(add, self._of.get(action, _NOTHING), amounts))
