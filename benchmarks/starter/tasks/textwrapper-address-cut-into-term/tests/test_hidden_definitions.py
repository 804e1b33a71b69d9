import unittest

from textwrapper import definitions


class Definitions(unittest.TestCase):
    def test_address(self):
        self.assertEqual(definitions("site: http://a.example", 40), ["site  http://a.example"])

    def test_time(self):
        self.assertEqual(definitions("at: 10:30:00\nto: 11:00:00", 40), ["at  10:30:00", "to  11:00:00"])

    def test_colon_at_the_end(self):
        self.assertEqual(definitions("these: a, b:", 40), ["these  a, b:"])

    def test_two_colons(self):
        self.assertEqual(definitions("a:: b", 40), ["a  : b"])

    def test_plain(self):
        self.assertEqual(definitions("a: b", 40), ["a  b"])

    def test_no_meaning(self):
        self.assertEqual(definitions("a:\nbb: c", 40), ["a", "bb  c"])

    def test_goes_on(self):
        self.assertEqual(definitions("a: b\n   c", 40), ["a  b c"])

    def test_no_term(self):
        with self.assertRaises(ValueError):
            definitions("nothing\na: b", 40)
