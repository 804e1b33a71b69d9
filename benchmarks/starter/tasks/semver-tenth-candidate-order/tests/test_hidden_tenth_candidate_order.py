import unittest

from semver import Range, Version


def ordered(text):
    return " ".join(str(version) for version in sorted(Version.parse(part) for part in text.split()))


class CandidateOrder(unittest.TestCase):
    def test_two_digits(self):
        self.assertEqual(ordered("1.0.0-rc.10 1.0.0-rc.9 1.0.0-rc.1"), "1.0.0-rc.1 1.0.0-rc.9 1.0.0-rc.10")

    def test_bare_numbers(self):
        self.assertLess(Version.parse("1.0.0-9"), Version.parse("1.0.0-11"))

    def test_newest(self):
        versions = [Version.parse(f"2.0.0-beta.{number}") for number in (2, 11, 9)]
        self.assertEqual(str(Range.parse("*").best(versions, prereleases=True)), "2.0.0-beta.11")

    def test_in_a_range(self):
        self.assertIn(Version.parse("1.0.0-rc.10"), Range.parse(">=1.0.0-rc.2 <1.0.0"))

    def test_numbers_before_words(self):
        self.assertLess(Version.parse("1.0.0-99"), Version.parse("1.0.0-alpha"))

    def test_words_by_characters(self):
        self.assertEqual(ordered("1.0.0-rc 1.0.0-beta 1.0.0-alpha"), "1.0.0-alpha 1.0.0-beta 1.0.0-rc")

    def test_shorter_first(self):
        self.assertLess(Version.parse("1.0.0-rc"), Version.parse("1.0.0-rc.1"))

    def test_same(self):
        self.assertEqual(Version.parse("1.0.0-rc.1"), Version.parse("1.0.0-rc.1+b"))
