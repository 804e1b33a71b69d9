import unittest

from textwrapper import cut, display_width, justify, pad, reflow, split_paragraphs, wrap

from . import show

TEXT = """\
The quick brown fox jumps over the lazy dog, and the dog, being lazy,
lets it. Nobody knows why the fox is in such a hurry.

    left = as it is
    right = too

On the next day the fox comes back, slowly this time, and jumps again.
"""


class WidthTest(unittest.TestCase):
    def test_wide(self):
        self.assertEqual(display_width("日本"), 4)

    def test_combining(self):
        self.assertEqual(display_width("e\u0301"), 1)

    def test_cut(self):
        self.assertEqual(cut("abcdef", 4), "abc…")
        self.assertEqual(cut("abcd", 4), "abcd")

    def test_pad(self):
        self.assertEqual([pad("ab", 5, side) for side in ("left", "right", "center")], ["ab   ", "   ab", " ab  "])


class WrapTest(unittest.TestCase):
    def test_wrap(self):
        self.assertEqual(show(wrap("one two three", 8)), ["one two", "three"])

    def test_exact_fit(self):
        self.assertEqual(show(wrap("one two three", 7)), ["one two", "three"])

    def test_prefixes(self):
        self.assertEqual(show(wrap("aa bb cc", 5, "- ", "  ")), ["- aa", "  bb", "  cc"])

    def test_long_word(self):
        self.assertEqual(show(wrap("abcdefgh ij", 3)), ["abc", "def", "gh", "ij"])

    def test_no_room(self):
        with self.assertRaises(ValueError):
            wrap("a", 2, "- ")

    def test_justify(self):
        self.assertEqual(justify("a b c", 8), "a   b  c")

    def test_paragraphs(self):
        self.assertEqual([len(lines) for lines in split_paragraphs(TEXT)], [2, 2, 1])

    def test_reflow(self):
        for width in (30, 40, 50, 60, 70):
            lines = show(reflow(TEXT, width).splitlines())
            self.assertLessEqual(max(map(display_width, lines)), width)
            self.assertIn("    right = too", lines)

    def test_justified(self):
        lines = show(reflow(TEXT, 36, justified=True).splitlines())
        self.assertEqual(display_width(lines[0]), 36)
