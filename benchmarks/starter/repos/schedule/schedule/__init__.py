"""Events, recurrences and calendars with fixed offsets from UTC."""

from .calendar import (
    Calendar,
    Slot,
    agenda_text,
    busy_minutes,
    collisions,
    free_slots,
    merge,
    week_table,
)
from .event import Event
from .moments import MomentError, format_moment, format_offset, parse_day, parse_moment, parse_offset
from .recurrence import Recurrence, RecurrenceError

__all__ = [
    "Calendar",
    "Event",
    "MomentError",
    "Recurrence",
    "RecurrenceError",
    "Slot",
    "agenda_text",
    "busy_minutes",
    "collisions",
    "format_moment",
    "format_offset",
    "free_slots",
    "merge",
    "parse_day",
    "parse_moment",
    "parse_offset",
    "week_table",
]
