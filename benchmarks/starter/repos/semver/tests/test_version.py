import unittest

from semver import Change, Version, VersionError, next_version


class Parsing(unittest.TestCase):
    def test_plain(self):
        self.assertEqual(Version.parse("1.22.3").triple, (1, 22, 3))

    def test_prerelease_and_build(self):
        version = Version.parse("v1.0.0-rc.1+linux.7")
        self.assertEqual(version.pre, ("rc", "1"))
        self.assertEqual(version.build, ("linux", "7"))

    def test_text_survives(self):
        for text in ("0.0.1", "1.2.3-alpha", "1.2.3-rc.1+b.5"):
            self.assertEqual(str(Version.parse(text)), text)

    def test_partial_is_refused(self):
        with self.assertRaises(VersionError):
            Version.parse("1.2")


class Ordering(unittest.TestCase):
    def test_numbers(self):
        self.assertLess(Version.parse("1.9.0"), Version.parse("1.10.0"))

    def test_prerelease_is_before_release(self):
        self.assertLess(Version.parse("1.0.0-rc.1"), Version.parse("1.0.0"))

    def test_words_after_numbers(self):
        self.assertLess(Version.parse("1.0.0-1"), Version.parse("1.0.0-a"))

    def test_build_is_ignored(self):
        self.assertEqual(Version.parse("1.0.0+a"), Version.parse("1.0.0+b"))


class Bumping(unittest.TestCase):
    def test_heaviest_change_wins(self):
        current = Version.parse("1.2.3")
        self.assertEqual(str(next_version(current, [Change.FIX, Change.FEATURE, Change.FIX])), "1.3.0")

    def test_breaking(self):
        self.assertEqual(str(next_version(Version.parse("1.2.3"), [Change.BREAKING])), "2.0.0")

    def test_breaking_before_first_release(self):
        self.assertEqual(str(next_version(Version.parse("0.2.3"), [Change.BREAKING])), "0.3.0")

    def test_no_change(self):
        current = Version.parse("1.2.3")
        self.assertEqual(next_version(current, []), current)
