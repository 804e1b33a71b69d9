"""One event: a title and the time that it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo

from .moments import parse_moment


@dataclass(frozen=True)
class Event:
    """From ``start`` up to, but not including, ``end``; both know their offset."""

    title: str
    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        if self.end <= self.start:
            raise ValueError(f"{self.title}: ends before it begins")

    @classmethod
    def of(cls, title: str, start: str, minutes: int) -> Event:
        """An event from the text of its start and its length."""
        begin = parse_moment(start)
        return cls(title, begin, begin + timedelta(minutes=minutes))

    @property
    def length(self) -> timedelta:
        """How long the event takes."""
        return self.end - self.start

    def overlaps(self, other: Event) -> bool:
        """Whether both take place at some moment."""
        return self.start < other.end and other.start < self.end

    def moved(self, start: datetime) -> Event:
        """The same event at another time."""
        return replace(self, start=start, end=start + self.length)

    def seen_from(self, zone: tzinfo) -> Event:
        """The same event with its times in another offset."""
        return replace(self, start=self.start.astimezone(zone), end=self.end.astimezone(zone))
