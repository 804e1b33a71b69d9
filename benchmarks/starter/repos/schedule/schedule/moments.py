"""Moments, days and offsets from and to text."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone

_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d\d):(?P<minutes>[0-5]\d)")


class MomentError(ValueError):
    """The text is not a moment, a day or an offset."""


def parse_offset(text: str) -> timezone:
    """An offset such as ``+05:30`` or ``-08:00``; ``Z`` is UTC itself."""
    if text == "Z":
        return timezone.utc
    match = _OFFSET.fullmatch(text)
    if match is None:
        raise MomentError(f"not an offset: {text!r}")
    sign = -1 if match["sign"] == "-" else 1
    minutes = sign * (int(match["hours"]) * 60 + int(match["minutes"]))
    if abs(minutes) >= 24 * 60:
        raise MomentError(f"an offset of a day or more: {text!r}")
    return timezone(timedelta(minutes=minutes))


def format_offset(moment: datetime) -> str:
    """The offset of a moment as `parse_offset` reads it."""
    offset = moment.utcoffset()
    if offset is None:
        raise MomentError(f"a moment without offset: {moment}")
    total = offset // timedelta(minutes=1)
    hours, minutes = divmod(abs(total), 60)
    return f"{'-' if total < 0 else '+'}{hours:02}:{minutes:02}"


def parse_moment(text: str) -> datetime:
    """A moment with its offset, such as ``2024-05-02T09:00:00+01:00``."""
    body, offset = (text[:-1], "Z") if text.endswith("Z") else (text[:-6], text[-6:])
    zone = parse_offset(offset)
    try:
        return datetime.strptime(body, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=zone)
    except ValueError as error:
        raise MomentError(f"not a moment: {text!r}") from error


def format_moment(moment: datetime) -> str:
    """A moment as `parse_moment` reads it; UTC is written as ``+00:00``."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + format_offset(moment)


def parse_day(text: str) -> date:
    """A day such as ``2024-05-02``."""
    try:
        return datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError as error:
        raise MomentError(f"not a day: {text!r}") from error
