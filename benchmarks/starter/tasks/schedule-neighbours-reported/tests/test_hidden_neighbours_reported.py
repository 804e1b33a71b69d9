import unittest

from schedule import Calendar, Event, collisions


def event(title, hour, minute=0, minutes=60):
    return Event.of(title, f"2024-05-06T{hour:02}:{minute:02}:00+02:00", minutes)


class Neighbours(unittest.TestCase):
    def test_full_day(self):
        calendar = Calendar("+02:00")
        for number, title in enumerate("abc"):
            calendar.add(event(title, 9 + number))
        self.assertEqual(calendar.conflicts("2024-05-06"), [])

    def test_neither_way_round(self):
        one, two = event("one", 9), event("two", 10)
        self.assertFalse(one.overlaps(two))
        self.assertFalse(two.overlaps(one))

    def test_neighbours_from_other_offsets(self):
        remote = Event.of("remote", "2024-05-06T08:00:00Z", 30)
        self.assertEqual(collisions([remote, event("here", 9)]), [])

    def test_one_minute(self):
        self.assertEqual(collisions([event("b", 10), event("a", 9, minutes=61)]), [("a", "b")])

    def test_inside(self):
        self.assertEqual(collisions([event("long", 9, minutes=180), event("short", 10)]), [("long", "short")])

    def test_same_begin(self):
        self.assertEqual(collisions([event("b", 9), event("a", 9, minutes=15)]), [("a", "b")])

    def test_same_end(self):
        self.assertEqual(collisions([event("a", 9), event("b", 9, 30, 30)]), [("a", "b")])

    def test_same_time(self):
        self.assertTrue(event("a", 9).overlaps(event("b", 9)))

    def test_gap(self):
        self.assertFalse(event("a", 9).overlaps(event("b", 10, 5)))

    def test_free_behind(self):
        calendar = Calendar("+02:00")
        calendar.add(event("a", 9))
        self.assertTrue(calendar.is_free(event("b", 10)))
        self.assertFalse(calendar.is_free(event("b", 9, 59)))
