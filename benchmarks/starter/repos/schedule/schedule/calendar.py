"""A calendar: events and recurring events, seen from one offset, its free time and its text."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from typing import Iterable, Iterator, Optional

from .event import Event
from .moments import parse_day, parse_offset
from .recurrence import Recurrence

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Slot:
    """Some time, from ``start`` up to ``end``."""

    start: datetime
    end: datetime

    @property
    def minutes(self) -> int:
        """The length in whole minutes."""
        return (self.end - self.start) // timedelta(minutes=1)


def merge(events: Iterable[Event]) -> list[Slot]:
    """The time that the events take, joined where they overlap or touch, in order."""
    slots: list[Slot] = []
    for event in sorted(events, key=lambda event: event.start):
        if slots and event.start <= slots[-1].end:
            slots[-1] = Slot(slots[-1].start, max(slots[-1].end, event.end))
        else:
            slots.append(Slot(event.start, event.end))
    return slots


def busy_minutes(events: Iterable[Event]) -> int:
    """The minutes that are taken, each counted once."""
    return sum(slot.minutes for slot in merge(events))


def free_slots(events: Iterable[Event], start: datetime, end: datetime, minutes: int = 1) -> list[Slot]:
    """The free time from ``start`` to ``end``, without what is shorter than some minutes."""
    free: list[Slot] = []
    position = start
    for slot in merge(events):
        if slot.end <= position:
            continue
        if slot.start >= end:
            break
        if slot.start > position:
            free.append(Slot(position, slot.start))
        position = slot.end
    if position < end:
        free.append(Slot(position, end))
    log.debug("%d free slots between %s and %s", len(free), start, end)
    return [slot for slot in free if slot.minutes >= minutes]


def collisions(events: Iterable[Event]) -> list[tuple[str, str]]:
    """The titles of each two events that overlap, the one that begins first first."""
    ordered = sorted(events, key=lambda event: (event.start, event.title))
    found = []
    for index, event in enumerate(ordered):
        for later in ordered[index + 1 :]:
            if event.overlaps(later):
                found.append((event.title, later.title))
    return found


class Calendar:
    """Events in the order in which they were added, and questions about them."""

    def __init__(self, offset: str = "Z") -> None:
        self.zone: tzinfo = parse_offset(offset)
        self._single: list[Event] = []
        self._recurring: list[tuple[Event, Recurrence]] = []
        self._cancelled: set[tuple[str, datetime]] = set()

    def add(self, event: Event, recurrence: Optional[Recurrence] = None) -> None:
        """Add an event that takes place once, or again and again."""
        if recurrence is None:
            self._single.append(event)
        else:
            self._recurring.append((event, recurrence))
        log.info("added %s at %s", event.title, event.start)

    def cancel(self, title: str, start: datetime) -> None:
        """Leave out the event of this title that begins at this moment."""
        self._cancelled.add((title, start.astimezone(timezone.utc)))

    def _all(self, before: date) -> Iterator[Event]:
        """Every event that begins before a day, with the times at which it was entered."""
        for event in self._single:
            yield event
        for first, recurrence in self._recurring:
            yield from recurrence.events(first, before)

    def _is_cancelled(self, event: Event) -> bool:
        return (event.title, event.start.astimezone(timezone.utc)) in self._cancelled

    def _local(self, event: Event) -> Event:
        return event.seen_from(self.zone)

    def between(self, start: datetime, end: datetime) -> list[Event]:
        """The events of which some part lies between two moments, in order, in local time."""
        # An event far to the east begins on the local day before or after.
        before = end.astimezone(self.zone).date() + timedelta(days=2)
        found = [
            self._local(event)
            for event in self._all(before)
            if event.start < end and start < event.end and not self._is_cancelled(event)
        ]
        log.debug("%d events between %s and %s", len(found), start, end)
        return sorted(found, key=lambda event: (event.start, event.title))

    def midnight(self, day: date) -> datetime:
        """The local begin of a day."""
        return datetime.combine(day, time(), tzinfo=self.zone)

    def on(self, day: str) -> list[Event]:
        """The events of which some part lies on a local day."""
        begin = self.midnight(parse_day(day))
        return self.between(begin, begin + timedelta(days=1))

    def by_day(self, first: str, days: int) -> dict[str, list[str]]:
        """The titles of the events that begin on each of some local days; days without any are left out."""
        begin = self.midnight(parse_day(first))
        end = begin + timedelta(days=days)
        result: dict[str, list[str]] = {}
        for event in self.between(begin, end):
            if event.start >= begin:
                result.setdefault(event.start.date().isoformat(), []).append(event.title)
        return result

    def next_after(self, moment: datetime, days: int = 31) -> Optional[Event]:
        """The first event that begins after a moment, looking some days ahead."""
        end = moment + timedelta(days=days)
        return next((event for event in self.between(moment, end) if event.start > moment), None)

    def conflicts(self, day: str) -> list[tuple[str, str]]:
        """The titles of each two events of a local day that overlap."""
        return collisions(self.on(day))

    def is_free(self, event: Event) -> bool:
        """Whether the event could be added without overlapping another one."""
        return not any(other.overlaps(event) for other in self.between(event.start, event.end))

    def free(self, day: str, opens: int = 9, closes: int = 17, minutes: int = 30) -> list[Slot]:
        """The free time of a local day between two full hours, at least some minutes each."""
        midnight = self.midnight(parse_day(day))
        start, end = midnight + timedelta(hours=opens), midnight + timedelta(hours=closes)
        return free_slots(self.between(start, end), start, end, minutes)

    def book(self, title: str, day: str, minutes: int, opens: int = 9, closes: int = 17) -> Optional[Event]:
        """Add an event in the first free time of a day that is long enough, if there is any."""
        slots = self.free(day, opens, closes, minutes)
        if not slots:
            log.info("no room for %s on %s", title, day)
            return None
        start = slots[0].start
        event = Event(title, start, start + timedelta(minutes=minutes))
        self.add(event)
        return event

    def export(self, first: str, days: int) -> list[tuple[str, str, str]]:
        """Title, start and end in UTC of everything that takes place on some local days."""
        begin = self.midnight(parse_day(first))
        rows = []
        for event in self.between(begin, begin + timedelta(days=days)):
            in_utc = event.seen_from(timezone.utc)
            rows.append((event.title, f"{in_utc.start:%Y-%m-%dT%H:%MZ}", f"{in_utc.end:%Y-%m-%dT%H:%MZ}"))
        return rows


def agenda_text(calendar: Calendar, day: str) -> str:
    """One line an event of a local day: the times, the title, and a sign where it goes over midnight."""
    begin = calendar.midnight(parse_day(day))
    end = begin + timedelta(days=1)
    lines = []
    for event in calendar.on(day):
        starts = "<     " if event.start < begin else f"{event.start:%H:%M} "
        ends = ">    " if event.end > end else f"{event.end:%H:%M}"
        lines.append(f"{starts}{ends} {event.title}")
    return "\n".join(lines) or "nothing"


def week_table(calendar: Calendar, first: str) -> str:
    """Seven lines: the day and the titles of the events that begin on it."""
    titles = calendar.by_day(first, 7)
    lines = []
    for number in range(7):
        day = parse_day(first) + timedelta(days=number)
        lines.append(f"{day:%Y-%m-%d} {', '.join(titles.get(day.isoformat(), [])) or '-'}")
    return "\n".join(lines)
