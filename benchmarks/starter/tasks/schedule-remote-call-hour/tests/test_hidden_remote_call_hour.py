import unittest
from datetime import timedelta

from schedule import Calendar, Event, Recurrence, agenda_text, parse_moment, week_table


def filled(offset):
    calendar = Calendar(offset)
    calendar.add(Event.of("east", "2024-03-01T06:00:00+09:00", 60))
    calendar.add(Event.of("west", "2024-03-01T20:00:00-08:00", 60))
    calendar.add(Event.of("daily", "2024-02-28T22:30:00+00:00", 30), Recurrence("day", times=3))
    return calendar


class LocalTime(unittest.TestCase):
    def test_by_day(self):
        self.assertEqual(
            filled("+02:00").by_day("2024-02-28", 5),
            {"2024-02-29": ["daily", "east"], "2024-03-01": ["daily"], "2024-03-02": ["daily", "west"]},
        )

    def test_agenda(self):
        self.assertEqual(agenda_text(filled("+02:00"), "2024-02-29"), "00:30 01:00 daily\n23:00 00:00 east")
        self.assertEqual(agenda_text(filled("-08:00"), "2024-02-29"), "13:00 14:00 east\n14:30 15:00 daily")

    def test_week(self):
        self.assertEqual(week_table(filled("Z"), "2024-03-01").splitlines()[:2], ["2024-03-01 daily", "2024-03-02 west"])

    def test_next(self):
        event = filled("+02:00").next_after(parse_moment("2024-03-01T12:00:00Z"))
        self.assertEqual(event.start.isoformat(), "2024-03-02T00:30:00+02:00")

    def test_offset_of_results(self):
        for event in filled("-03:30").on("2024-02-29"):
            self.assertEqual(event.start.utcoffset(), timedelta(hours=-3, minutes=-30))

    def test_free_day(self):
        self.assertEqual([slot.minutes for slot in filled("+09:00").free("2024-03-01", 5, 9)], [60, 30, 60])

    def test_export(self):
        self.assertEqual(filled("+02:00").export("2024-03-02", 1)[1], ("west", "2024-03-02T04:00Z", "2024-03-02T05:00Z"))
