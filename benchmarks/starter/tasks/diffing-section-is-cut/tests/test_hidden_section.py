import unittest

from diffing import FilePatch, PatchSyntaxError, parse_patch


class Sections(unittest.TestCase):
    def section(self, header):
        return parse_patch(f"--- a\n+++ b\n{header}\n-x\n+y\n")[0].hunks[0].section

    def test_two_variables(self):
        self.assertEqual(self.section("@@ -3,1 +3,1 @@ def total = @@count + @@rest"), "def total = @@count + @@rest")

    def test_one_variable(self):
        self.assertEqual(self.section("@@ -3 +3 @@ @@count = 0"), "@@count = 0")

    def test_marks_in_the_middle(self):
        self.assertEqual(self.section("@@ -3 +3 @@ a @@ b @@ c"), "a @@ b @@ c")

    def test_plain(self):
        self.assertEqual(self.section("@@ -3 +3 @@ def main():"), "def main():")

    def test_none(self):
        self.assertEqual(self.section("@@ -3 +3 @@"), "")

    def test_printed_as_read(self):
        header = "@@ -3 +3 @@ x = @@y @@z"
        patch = parse_patch(f"--- a\n+++ b\n{header}\n-x\n+y\n")[0]
        self.assertEqual(patch.to_lines()[2], header)

    def test_numbers(self):
        hunk = parse_patch("--- a\n+++ b\n@@ -3 +4 @@ s @@t\n-x\n+y\n")[0].hunks[0]
        self.assertEqual((hunk.old_start, hunk.new_start), (2, 3))

    def test_not_closed(self):
        with self.assertRaises(PatchSyntaxError):
            self.section("@@ -3 +3")
