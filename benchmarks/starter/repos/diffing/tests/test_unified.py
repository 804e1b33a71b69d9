import unittest

from diffing import PatchConflict, PatchSyntaxError, apply_patch, parse_patch, unified

OLD = [str(number) for number in range(20)]


class Printing(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(unified(OLD, OLD), [])

    def test_one_change(self):
        self.assertEqual(unified(["a", "b", "c"], ["a", "x", "c"]), ["--- old", "+++ new", "@@ -1,3 +1,3 @@", " a", "-b", "+x", " c"])

    def test_far_changes_have_their_own_hunks(self):
        new = ["x", *OLD[1:-1], "y"]
        self.assertEqual(sum(line.startswith("@@") for line in unified(OLD, new)), 2)

    def test_near_changes_share_a_hunk(self):
        new = [*OLD[:5], "x", *OLD[6:11], "y", *OLD[12:]]
        self.assertEqual(sum(line.startswith("@@") for line in unified(OLD, new)), 1)

    def test_from_nothing(self):
        self.assertEqual(unified([], ["a"])[2:], ["@@ -0,0 +1 @@", "+a"])

    def test_context(self):
        self.assertEqual(unified(["a", "b", "c"], ["a", "x", "c"], context=0)[2:], ["@@ -2 +2 @@", "-b", "+x"])

    def test_key(self):
        self.assertEqual(unified(["a", " b"], ["A", "b"], key=str.strip)[2:], ["@@ -1,2 +1,2 @@", "-a", "+A", "  b"])


class Reading(unittest.TestCase):
    def test_names(self):
        patch = parse_patch("--- a/x.txt\t2020-01-01\n+++ b/x.txt\n@@ -1 +1 @@\n-a\n+b\n")[0]
        self.assertEqual((patch.old_name, patch.new_name), ("a/x.txt", "b/x.txt"))

    def test_two_files(self):
        text = "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n--- c\n+++ d\n@@ -0,0 +1 @@\n+z\n"
        self.assertEqual([patch.counts() for patch in parse_patch(text)], [(1, 1), (1, 0)])

    def test_section(self):
        patch = parse_patch("--- a\n+++ b\n@@ -1 +1 @@ def main():\n-x\n+y\n")[0]
        self.assertEqual(patch.hunks[0].section, "def main():")

    def test_hunk_without_file(self):
        with self.assertRaises(PatchSyntaxError):
            parse_patch("@@ -1 +1 @@\n-x\n+y\n")

    def test_short_hunk(self):
        with self.assertRaises(PatchSyntaxError):
            parse_patch("--- a\n+++ b\n@@ -1,3 +1 @@\n-x")


class Applying(unittest.TestCase):
    def patch(self, old, new, **options):
        return parse_patch("\n".join(unified(old, new, **options)))[0]

    def test_round_trip(self):
        new = ["x", *OLD[2:9], "y", "z", *OLD[9:-1]]
        self.assertEqual(apply_patch(OLD, self.patch(OLD, new)), new)

    def test_reversed(self):
        new = ["x", *OLD[2:9], "y", "z", *OLD[9:-1]]
        self.assertEqual(apply_patch(new, self.patch(OLD, new).reversed()), OLD)

    def test_moved(self):
        patch = self.patch(OLD, [*OLD[:9], "x", *OLD[10:]])
        self.assertEqual(apply_patch(["n", "m", *OLD], patch)[11], "x")

    def test_conflict(self):
        with self.assertRaises(PatchConflict):
            apply_patch(["other"], self.patch(["a"], ["b"]))
