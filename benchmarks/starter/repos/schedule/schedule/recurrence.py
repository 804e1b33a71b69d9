"""Rules by which an event comes back."""

from __future__ import annotations

import calendar
import itertools
import logging
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Iterator, Optional

from .event import Event

log = logging.getLogger(__name__)

_DAYS = ("mo", "tu", "we", "th", "fr", "sa", "su")
_UNITS = ("day", "week", "month")


class RecurrenceError(ValueError):
    """The rule makes no sense."""


@dataclass(frozen=True)
class Recurrence:
    """Every so many days, weeks or months, up to a day (inclusive) or for a number of times.

    A weekly rule may name its weekdays; without them it keeps the weekday of the first event. A
    monthly rule keeps the day of the month, or takes the last day in months that are too short.
    """

    unit: str
    every: int = 1
    weekdays: tuple[str, ...] = ()
    until: Optional[date] = None
    times: Optional[int] = None

    def __post_init__(self) -> None:
        if self.unit not in _UNITS:
            raise RecurrenceError(f"unknown unit {self.unit!r}")
        if self.every < 1:
            raise RecurrenceError(f"every {self.every} {self.unit}s")
        unknown = [name for name in self.weekdays if name not in _DAYS]
        if unknown or (self.weekdays and self.unit != "week"):
            raise RecurrenceError(f"weekdays {self.weekdays} of a rule by {self.unit}")

    def days(self, first: date) -> Iterator[date]:
        """The days of the rule, the first one included when the rule names its weekday."""
        count = 0
        for day in self._candidates(first):
            if self.until is not None and day > self.until:
                break
            if self.times is not None and count >= self.times:
                break
            count += 1
            yield day

    def _candidates(self, first: date) -> Iterator[date]:
        if self.unit == "day":
            for step in itertools.count(0, self.every):
                yield first + timedelta(days=step)
        elif self.unit == "week":
            yield from self._weekly(first)
        else:
            for step in itertools.count(0, self.every):
                yield _month_later(first, step)

    def _weekly(self, first: date) -> Iterator[date]:
        """The named weekdays of every so manieth week, weeks beginning on Monday."""
        wanted = sorted(_DAYS.index(name) for name in self.weekdays) or [first.weekday()]
        monday = first - timedelta(days=first.weekday())
        for week in itertools.count(0, self.every):
            for weekday in wanted:
                day = monday + timedelta(weeks=week, days=weekday)
                if day >= first:
                    yield day

    def events(self, first: Event, before: date) -> Iterator[Event]:
        """The event on each day of the rule, as long as it begins before a day."""
        for day in self.days(first.start.date()):
            if day >= before:
                break
            log.debug("%s comes back on %s", first.title, day)
            yield first.moved(first.start.replace(year=day.year, month=day.month, day=day.day))


def _month_later(first: date, months: int) -> date:
    """The same day some months later, or the last day of that month."""
    year, month = divmod(first.year * 12 + first.month - 1 + months, 12)
    month += 1
    return date(year, month, min(first.day, calendar.monthrange(year, month)[1]))
