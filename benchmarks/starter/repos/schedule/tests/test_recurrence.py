import itertools
import unittest

from schedule import Recurrence, RecurrenceError, parse_day


def days(rule, first, number=5):
    return [day.isoformat()[5:] for day in itertools.islice(rule.days(parse_day(first)), number)]


class Rules(unittest.TestCase):
    def test_daily(self):
        self.assertEqual(days(Recurrence("day", 10), "2024-01-25", 3), ["01-25", "02-04", "02-14"])

    def test_weekly(self):
        self.assertEqual(days(Recurrence("week"), "2024-01-25", 3), ["01-25", "02-01", "02-08"])

    def test_weekdays(self):
        rule = Recurrence("week", 2, weekdays=("fr", "mo"))
        self.assertEqual(days(rule, "2024-01-03"), ["01-05", "01-15", "01-19", "01-29", "02-02"])

    def test_monthly(self):
        self.assertEqual(days(Recurrence("month"), "2024-11-15", 3), ["11-15", "12-15", "01-15"])

    def test_short_months(self):
        self.assertEqual(days(Recurrence("month"), "2024-01-31", 4), ["01-31", "02-29", "03-31", "04-30"])

    def test_until_includes_its_day(self):
        rule = Recurrence("day", until=parse_day("2024-01-03"))
        self.assertEqual(days(rule, "2024-01-01"), ["01-01", "01-02", "01-03"])

    def test_times(self):
        self.assertEqual(days(Recurrence("day", times=2), "2024-01-01"), ["01-01", "01-02"])

    def test_nonsense(self):
        for arguments in (("year",), ("day", 0), ("day", 1, ("mo",)), ("week", 1, ("xx",))):
            with self.assertRaises(RecurrenceError):
                Recurrence(*arguments)
