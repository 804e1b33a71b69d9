"""Numbers of weeks."""

import datetime


def number(day):
    """Return the number of the week of a day such as ``2027-05-04``."""
    date = datetime.date.fromisoformat(day)
    return (date.timetuple().tm_yday - 1) // 7 + 1
