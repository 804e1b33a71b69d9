import unittest

from schedule import Calendar, Event, Recurrence, agenda_text, busy_minutes, parse_moment, week_table


def office():
    calendar = Calendar("+02:00")
    calendar.add(Event.of("standup", "2024-05-06T09:00:00+02:00", 15), Recurrence("day", times=20))
    calendar.add(Event.of("planning", "2024-05-06T10:00:00+02:00", 90), Recurrence("week", 2))
    calendar.add(Event.of("call", "2024-05-07T08:00:00+00:00", 60))
    calendar.add(Event.of("review", "2024-05-07T10:30:00+02:00", 60))
    calendar.add(Event.of("backup", "2024-05-07T23:00:00+02:00", 120))
    return calendar


def titles(events):
    return [event.title for event in events]


class Days(unittest.TestCase):
    def test_in_order(self):
        self.assertEqual(titles(office().on("2024-05-07")), ["standup", "call", "review", "backup"])

    def test_over_midnight(self):
        self.assertEqual(titles(office().on("2024-05-08")), ["backup", "standup"])

    def test_recurring(self):
        self.assertEqual(titles(office().on("2024-05-20")), ["standup", "planning"])

    def test_cancelled(self):
        calendar = office()
        calendar.cancel("standup", parse_moment("2024-05-07T07:00:00Z"))
        self.assertEqual(titles(calendar.on("2024-05-07")), ["call", "review", "backup"])

    def test_by_day(self):
        found = office().by_day("2024-05-05", 3)
        self.assertEqual(found["2024-05-06"], ["standup", "planning"])
        self.assertEqual(list(found), ["2024-05-06", "2024-05-07"])

    def test_next(self):
        found = office().next_after(parse_moment("2024-05-07T11:00:00+02:00"))
        self.assertEqual(found.title, "backup")

    def test_export(self):
        self.assertIn(("call", "2024-05-07T08:00Z", "2024-05-07T09:00Z"), office().export("2024-05-07", 1))


class Room(unittest.TestCase):
    def test_conflicts(self):
        self.assertEqual(office().conflicts("2024-05-07"), [("call", "review")])

    def test_is_free(self):
        calendar = office()
        self.assertFalse(calendar.is_free(Event.of("x", "2024-05-07T09:10:00+02:00", 10)))
        self.assertTrue(calendar.is_free(Event.of("x", "2024-05-07T12:00:00+02:00", 10)))

    def test_free(self):
        slots = office().free("2024-05-07")
        self.assertEqual(
            [(f"{s.start:%H:%M}", f"{s.end:%H:%M}") for s in slots], [("09:15", "10:00"), ("11:30", "17:00")]
        )

    def test_book(self):
        event = office().book("talk", "2024-05-07", 60)
        self.assertEqual(f"{event.start:%H:%M}", "11:30")

    def test_no_room(self):
        self.assertIsNone(office().book("retreat", "2024-05-07", 480))

    def test_busy(self):
        self.assertEqual(busy_minutes(office().on("2024-05-07")), 15 + 90 + 120)


class Text(unittest.TestCase):
    def test_agenda(self):
        self.assertEqual(
            agenda_text(office(), "2024-05-07").splitlines()[1:],
            ["10:00 11:00 call", "10:30 11:30 review", "23:00 >     backup"],
        )

    def test_empty(self):
        self.assertEqual(agenda_text(Calendar(), "2024-05-07"), "nothing")

    def test_week(self):
        lines = week_table(office(), "2024-05-06").splitlines()
        self.assertEqual(lines[1], "2024-05-07 standup, call, review, backup")
