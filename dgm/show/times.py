"""Clock times and durations for people."""

import time

DAY_S = 86_400
_UNITS = ((DAY_S, "d"), (3_600, "h"), (60, "min"))
YEAR_S = 366 * DAY_S


def local_time_text(at: float, now: float) -> str:
    """Return Unix time as local clock time: ``14:03:22``, with the date where it is not today's."""
    then, today = time.localtime(at), time.localtime(now)
    same_day = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M", then)


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units: ``33 s``, ``1 min 12 s``, ``5 h 27 min``, ``3 d 4 h``."""
    whole = max(0, round(seconds))
    if whole > YEAR_S:
        return "more than a year"
    for size, name, smaller, other in (
        (DAY_S, "d", 3_600, "h"),
        (3_600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {name}" + (f" {rest} {other}" if rest else "")
    return f"{whole} s"


def rough_duration_text(seconds: float, least: int = 2) -> str:
    """Return a duration in one unit, with a number of at least ``least``: ``40 s``, ``5 min``, ``3 h``, ``2 d``."""
    for size, name in _UNITS:
        if seconds >= least * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(seconds, 0.0):.0f} s"
