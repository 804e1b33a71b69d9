import unittest

from diffing import merge


class Merging(unittest.TestCase):
    base = list("abcdefgh")

    def test_unchanged(self):
        self.assertEqual(merge(self.base, self.base, self.base).lines, self.base)

    def test_one_side(self):
        self.assertEqual(merge(self.base, self.base, list("abxdefgh")).lines, list("abxdefgh"))

    def test_both_sides(self):
        self.assertEqual(merge(self.base, list("xabcdefgh"), list("abcdefy")).lines, list("xabcdefy"))

    def test_same_change(self):
        merged = merge(self.base, list("abxdefgh"), list("abxdefgh"))
        self.assertEqual((merged.lines, merged.conflicts), (list("abxdefgh"), []))

    def test_conflict(self):
        merged = merge(["a", "b"], ["a", "x"], ["a", "y"])
        self.assertEqual(merged.lines, ["a", "<<<<<<< ours", "x", "=======", "y", ">>>>>>> theirs"])
        self.assertEqual(merged.conflicts, [(1, 5)])

    def test_changes_after_growth(self):
        merged = merge(self.base, list("a12bcdexgh"), list("abcd3efgy"))
        self.assertEqual(merged.lines, list("a12bcd3exgy"))
