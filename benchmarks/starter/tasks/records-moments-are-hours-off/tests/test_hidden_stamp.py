import unittest
from datetime import datetime, timezone

from records import FieldError, Stamp


class Stamps(unittest.TestCase):
    def utc(self, *parts):
        return datetime(*parts, tzinfo=timezone.utc)

    def test_east(self):
        self.assertEqual(Stamp("t").parse("202401311200+060"), self.utc(2024, 1, 31, 11))

    def test_west(self):
        self.assertEqual(Stamp("t").parse("202401311200-300"), self.utc(2024, 1, 31, 17))

    def test_half_hours(self):
        self.assertEqual(Stamp("t").parse("202401311200+330"), self.utc(2024, 1, 31, 6, 30))

    def test_other_day(self):
        self.assertEqual(Stamp("t").parse("202403010030+060"), self.utc(2024, 2, 29, 23, 30))

    def test_round_trip(self):
        moment = self.utc(2024, 7, 1, 22, 15)
        for offset in (-300, 0, 60, 345):
            field = Stamp("t", offset_min=offset)
            self.assertEqual(field.parse(field.format(moment)), moment)

    def test_utc(self):
        self.assertEqual(Stamp("t").parse("202401311200+000"), self.utc(2024, 1, 31, 12))

    def test_unreadable(self):
        with self.assertRaises(FieldError):
            Stamp("t").parse("202413311200+000")
