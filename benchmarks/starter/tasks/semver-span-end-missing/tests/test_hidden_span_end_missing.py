import unittest

from semver import Range, Version


def inside(text, versions):
    wanted = Range.parse(text)
    return [version for version in versions.split() if Version.parse(version) in wanted]


class SpanEnds(unittest.TestCase):
    def test_minor_end(self):
        self.assertEqual(inside("1.0 - 1.4", "0.9.9 1.0.0 1.3.9 1.4.0 1.4.99 1.5.0"), ["1.0.0", "1.3.9", "1.4.0", "1.4.99"])

    def test_major_end(self):
        self.assertEqual(inside("1 - 2", "0.9.0 1.0.0 2.0.0 2.9.9 3.0.0"), ["1.0.0", "2.0.0", "2.9.9"])

    def test_wildcard_end(self):
        self.assertEqual(inside("1.2.3 - 2.x", "1.2.2 1.2.3 2.7.0 3.0.0"), ["1.2.3", "2.7.0"])

    def test_open_end(self):
        self.assertEqual(inside("1.2.3 - *", "1.2.2 1.2.3 9.0.0"), ["1.2.3", "9.0.0"])

    def test_text(self):
        self.assertEqual(str(Range.parse("1.2 - 2.3")), ">=1.2.0 <2.4.0-0")

    def test_full_end_is_inside(self):
        self.assertEqual(inside("1.2.0 - 2.3.0", "1.2.0 2.3.0 2.3.1"), ["1.2.0", "2.3.0"])

    def test_partial_start(self):
        self.assertEqual(inside("1.2 - 2.3.4", "1.1.9 1.2.0 2.3.4 2.3.5"), ["1.2.0", "2.3.4"])

    def test_no_prerelease_above_the_end(self):
        self.assertFalse(Range.parse("1.2 - 2.3").matches(Version.parse("2.4.0-rc.1"), prereleases=True))
