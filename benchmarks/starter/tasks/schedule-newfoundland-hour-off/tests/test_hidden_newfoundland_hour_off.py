import unittest
from datetime import datetime, timedelta, timezone

from schedule import Calendar, Event, format_moment, format_offset, parse_moment, parse_offset


def at(**offset):
    return datetime(2024, 5, 2, 8, 30, tzinfo=timezone(timedelta(**offset)))


class HalfHoursWest(unittest.TestCase):
    def test_parse(self):
        for text, minutes in (("-03:30", -210), ("-09:30", -570), ("-00:45", -45), ("-01:01", -61)):
            self.assertEqual(parse_offset(text).utcoffset(None), timedelta(minutes=minutes))

    def test_same_moment(self):
        self.assertEqual(parse_moment("2024-05-02T08:30:00-03:30"), parse_moment("2024-05-02T12:00:00Z"))

    def test_format(self):
        self.assertEqual(format_offset(at(hours=-3, minutes=-30)), "-03:30")
        self.assertEqual(format_offset(at(minutes=-15)), "-00:15")

    def test_survives(self):
        for text in ("2024-05-02T08:30:00-03:30", "2024-05-02T08:30:00-00:45"):
            self.assertEqual(format_moment(parse_moment(text)), text)

    def test_day(self):
        calendar = Calendar("-03:30")
        calendar.add(Event.of("late", "2024-05-03T02:45:00Z", 30))
        self.assertEqual([event.title for event in calendar.on("2024-05-02")], ["late"])

    def test_whole_hours_west(self):
        self.assertEqual(parse_offset("-08:00").utcoffset(None), timedelta(hours=-8))
        self.assertEqual(format_offset(at(hours=-8)), "-08:00")

    def test_east(self):
        self.assertEqual(parse_offset("+05:45").utcoffset(None), timedelta(hours=5, minutes=45))
        self.assertEqual(format_offset(at(hours=5, minutes=45)), "+05:45")

    def test_utc(self):
        self.assertEqual(format_offset(at(hours=0)), "+00:00")
