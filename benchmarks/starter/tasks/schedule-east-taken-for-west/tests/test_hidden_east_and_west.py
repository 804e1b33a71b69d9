import unittest
from datetime import timedelta

from schedule import Calendar, Event, agenda_text, parse_moment, parse_offset


class EastAndWest(unittest.TestCase):
    def test_east(self):
        for text, minutes in (("+05:30", 330), ("+02:00", 120), ("+00:15", 15)):
            self.assertEqual(parse_offset(text).utcoffset(None), timedelta(minutes=minutes))

    def test_west(self):
        for text, minutes in (("-03:30", -210), ("-08:00", -480), ("-00:45", -45)):
            self.assertEqual(parse_offset(text).utcoffset(None), timedelta(minutes=minutes))

    def test_same_moment(self):
        self.assertEqual(parse_moment("2024-05-02T08:30:00-03:30"), parse_moment("2024-05-02T12:00:00Z"))
        self.assertEqual(parse_moment("2024-05-02T14:00:00+02:00"), parse_moment("2024-05-02T12:00:00Z"))

    def test_agenda(self):
        calendar = Calendar("+02:00")
        calendar.add(Event.of("call", "2024-05-07T08:00:00Z", 60))
        self.assertEqual(agenda_text(calendar, "2024-05-07"), "10:00 11:00 call")

    def test_by_day(self):
        calendar = Calendar("+02:00")
        calendar.add(Event.of("launch", "2024-05-07T20:00:00-08:00", 20))
        self.assertEqual(calendar.by_day("2024-05-06", 4), {"2024-05-08": ["launch"]})

    def test_zero(self):
        for text in ("Z", "+00:00", "-00:00"):
            self.assertEqual(parse_offset(text).utcoffset(None), timedelta(0))

    def test_one_offset(self):
        calendar = Calendar("+02:00")
        calendar.add(Event.of("lunch", "2024-05-07T12:00:00+02:00", 30))
        self.assertEqual(agenda_text(calendar, "2024-05-07"), "12:00 12:30 lunch")
