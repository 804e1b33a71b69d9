import datetime
import os
import tempfile
import unittest

import sessions

NOON = datetime.datetime(2026, 5, 1, 12, 30, 15)


class RoundTrip(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.file = os.path.join(scratch.name, "s1")

    def check(self, session):
        sessions.save(self.file, session)
        found = sessions.load(self.file)
        self.assertEqual((found, repr(found)), (session, repr(session)))

    def test_plain(self):
        self.check({"user": "mia", "visits": 3, "cart": [1, 2.5, None, True]})

    def test_dates(self):
        self.check({"last": NOON, "day": datetime.date(2026, 5, 2)})

    def test_set(self):
        self.check({"seen": {4}})

    def test_tuple(self):
        self.check({"at": (51.5, 7.4), "none": ()})

    def test_nested(self):
        self.check({"log": [(NOON, {"tags": {"a"}}), [datetime.date(2026, 1, 1)]]})

    def test_earlier_file(self):
        with open(self.file, "w") as file:
            file.write('{"user": "mia", "cart": [1, 2]}')
        self.assertEqual(sessions.load(self.file), {"user": "mia", "cart": [1, 2]})
