import unittest

from semver import Range, RangeError, Version


def matching(text, versions):
    wanted = Range.parse(text)
    return [version for version in versions.split() if Version.parse(version) in wanted]


class Comparators(unittest.TestCase):
    def test_exact(self):
        self.assertEqual(matching("1.2.3", "1.2.2 1.2.3 1.2.4"), ["1.2.3"])

    def test_wildcard(self):
        self.assertEqual(matching("1.2.x", "1.1.9 1.2.0 1.2.9 1.3.0"), ["1.2.0", "1.2.9"])

    def test_both_ends(self):
        self.assertEqual(matching(">=1.2.0 <2.0.0", "1.1.9 1.2.0 1.9.9 2.0.0"), ["1.2.0", "1.9.9"])

    def test_alternatives(self):
        self.assertEqual(matching("1.x || 3.x", "1.0.0 2.0.0 3.5.0"), ["1.0.0", "3.5.0"])

    def test_star_is_everything(self):
        self.assertEqual(matching("*", "0.0.1 9.9.9"), ["0.0.1", "9.9.9"])

    def test_caret(self):
        self.assertEqual(matching("^1.2.3", "1.2.2 1.2.3 1.9.0 2.0.0"), ["1.2.3", "1.9.0"])

    def test_caret_before_first_release(self):
        self.assertEqual(matching("^0.2.3", "0.2.3 0.2.9 0.3.0"), ["0.2.3", "0.2.9"])

    def test_tilde(self):
        self.assertEqual(matching("~1.2.3", "1.2.3 1.2.9 1.3.0"), ["1.2.3", "1.2.9"])

    def test_hyphen(self):
        self.assertEqual(matching("1.2.0 - 2.3.0", "1.1.0 1.2.0 2.3.0 2.3.1"), ["1.2.0", "2.3.0"])

    def test_garbage(self):
        for text in ("1.2.3.4", "one", ">= <1"):
            with self.assertRaises(RangeError):
                Range.parse(text)


class Prereleases(unittest.TestCase):
    def test_not_by_default(self):
        self.assertEqual(matching(">=1.0.0", "1.1.0-rc.1 1.1.0"), ["1.1.0"])

    def test_named_release(self):
        self.assertEqual(matching(">=1.1.0-beta", "1.1.0-rc.1 1.2.0-rc.1"), ["1.1.0-rc.1"])

    def test_not_above_a_caret(self):
        self.assertFalse(Range.parse("^1.0").matches(Version.parse("2.0.0-rc.1"), prereleases=True))


class Combining(unittest.TestCase):
    def test_intersection(self):
        both = Range.parse(">=1.2").intersect(Range.parse("<=1.5.0"))
        self.assertEqual(str(both), ">=1.2.0 <=1.5.0")

    def test_disjoint(self):
        self.assertTrue(Range.parse("1.x").intersect(Range.parse("2.x")).is_empty)

    def test_best(self):
        versions = [Version.parse(text) for text in ("1.0.0", "1.4.0", "1.3.0", "2.0.0")]
        self.assertEqual(str(Range.parse("^1").best(versions)), "1.4.0")

    def test_best_of_nothing(self):
        self.assertIsNone(Range.parse("^1").best([]))
