import unittest

from diffing import Edit, compare, unified


class Keys(unittest.TestCase):
    def test_spaces(self):
        lines = unified(["a ", "b"], ["a", "c"], key=str.strip)
        self.assertEqual(lines[2:], ["@@ -1,2 +1,2 @@", " a ", "-b", "+c"])

    def test_case(self):
        self.assertEqual(compare(["A", "b"], ["a", "B", "c"], key=str.lower), [Edit(2, 2, 2, 3)])

    def test_last_argument(self):
        self.assertEqual(compare(["A"], ["a"], str.lower), [])
        self.assertEqual(unified(["A"], ["a"], "x", "y", 3, str.lower), [])

    def test_changed_lines_are_printed_as_they_are(self):
        self.assertEqual(unified([" A "], [" B "], key=str.strip)[3:], ["- A ", "+ B "])

    def test_lists_are_left_alone(self):
        old, new = ["A"], ["a", "B"]
        compare(old, new, key=str.lower)
        self.assertEqual((old, new), (["A"], ["a", "B"]))

    def test_without(self):
        self.assertEqual(compare(["A"], ["a"]), [Edit(0, 1, 0, 1)])
        self.assertEqual(unified(["a"], ["a"]), [])
