import unittest

from semver import Range, Version


def both(one, other):
    return str(Range.parse(one).intersect(Range.parse(other)))


class LowerEnds(unittest.TestCase):
    def test_open_first(self):
        self.assertEqual(both(">1.0.0", ">=1.0.0"), ">1.0.0")

    def test_open_second(self):
        self.assertEqual(both(">=2.1.0", ">2.1.0 <4.0.0"), ">2.1.0 <4.0.0")

    def test_in_one_text(self):
        self.assertNotIn(Version.parse("1.2.0"), Range.parse(">1.2.0 >=1.2.0"))

    def test_exact_against_open(self):
        self.assertTrue(Range.parse("=1.2.0").intersect(Range.parse(">1.2.0")).is_empty)

    def test_both_closed(self):
        self.assertEqual(both(">=1.0.0", ">=1.0.0 <2.0.0"), ">=1.0.0 <2.0.0")

    def test_both_open(self):
        self.assertEqual(both(">1.0.0", ">1.0.0"), ">1.0.0")

    def test_different_ends(self):
        self.assertEqual(both(">1.0.0", ">=1.0.1"), ">=1.0.1")

    def test_upper_ends(self):
        self.assertEqual(both("<=2.0.0", "<2.0.0"), "<2.0.0")
        self.assertEqual(both("<=2.0.0", "<=2.0.0"), "<=2.0.0")
