import unittest

from diffing import Edit, compare, mark_words, similarity
from diffing.matching import matching_blocks


class Matching(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(matching_blocks("abc", "abc"), [(0, 0, 3)])

    def test_nothing(self):
        self.assertEqual(matching_blocks("abc", "xyz"), [])

    def test_middle(self):
        self.assertEqual(matching_blocks("xaby", "zabw"), [(1, 1, 2)])

    def test_longest(self):
        self.assertEqual(sum(length for _, _, length in matching_blocks("abcbdab", "bdcaba")), 4)


class Comparing(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(compare(["a"], ["a"]), [])

    def test_replace(self):
        self.assertEqual(compare(list("abc"), list("axc")), [Edit(1, 2, 1, 2)])

    def test_kinds(self):
        edits = compare(list("abcd"), list("xabd"))
        self.assertEqual([edit.kind for edit in edits], ["insert", "delete"])

    def test_at_the_end(self):
        self.assertEqual(compare(list("ab"), list("abc")), [Edit(2, 2, 2, 3)])

    def test_key(self):
        self.assertEqual(compare(["a ", "b"], ["a", "c"], key=str.strip), [Edit(1, 2, 1, 2)])

    def test_similarity(self):
        self.assertEqual([similarity("abcd", "abxy"), similarity("", "")], [0.5, 1.0])


class Words(unittest.TestCase):
    def test_replaced_word(self):
        self.assertEqual(mark_words("a red car", "a blue car"), "a [-red-]{+blue+} car")

    def test_added_word(self):
        self.assertEqual(mark_words("a car", "a car!"), "a car{+!+}")
