import unittest
from datetime import timedelta

from schedule import Event, MomentError, format_moment, parse_day, parse_moment, parse_offset


class Offsets(unittest.TestCase):
    def test_east(self):
        self.assertEqual(parse_offset("+05:30").utcoffset(None), timedelta(hours=5, minutes=30))

    def test_west(self):
        self.assertEqual(parse_offset("-08:00").utcoffset(None), timedelta(hours=-8))

    def test_west_with_minutes(self):
        self.assertEqual(parse_offset("-03:30").utcoffset(None), timedelta(hours=-3, minutes=-30))

    def test_not_an_offset(self):
        for text in ("5", "+5:00", "+05:60", "+24:00"):
            with self.assertRaises(MomentError):
                parse_offset(text)


class Moments(unittest.TestCase):
    def test_utc(self):
        self.assertEqual(parse_moment("2024-05-02T09:00:00Z"), parse_moment("2024-05-02T11:00:00+02:00"))

    def test_text_survives(self):
        for text in ("2024-05-02T09:00:00+01:00", "2024-12-31T23:59:59-03:30", "2024-01-01T00:00:00+00:00"):
            self.assertEqual(format_moment(parse_moment(text)), text)

    def test_no_such_day(self):
        with self.assertRaises(MomentError):
            parse_day("2024-02-30")
        with self.assertRaises(MomentError):
            parse_moment("2024-02-30T00:00:00Z")


class Events(unittest.TestCase):
    def test_backwards(self):
        moment = parse_moment("2024-05-02T09:00:00Z")
        with self.assertRaises(ValueError):
            Event("x", moment, moment)

    def test_overlap(self):
        one = Event.of("one", "2024-05-02T09:00:00Z", 60)
        two = Event.of("two", "2024-05-02T09:30:00Z", 60)
        self.assertTrue(one.overlaps(two))
        self.assertTrue(two.overlaps(one))

    def test_one_after_the_other(self):
        one = Event.of("one", "2024-05-02T09:00:00Z", 60)
        two = Event.of("two", "2024-05-02T10:00:00Z", 60)
        self.assertFalse(one.overlaps(two))
        self.assertFalse(two.overlaps(one))
