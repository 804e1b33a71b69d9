import unittest

from diffing import apply_patch, compare, merge, parse_patch, similarity, unified


class Repetition(unittest.TestCase):
    def test_copied_list(self):
        base = ["title", "a", "b"]
        self.assertEqual(merge(base, ["title", "a", "b", "a", "b"], ["Title", "a", "b"]).lines, ["Title", "a", "b", "a", "b"])

    def test_another_closing_line(self):
        base = ["x", "end"]
        self.assertEqual(merge(base, ["x", "end"], ["x", "end", "end"]).lines, ["x", "end", "end"])

    def test_taken_away_again(self):
        base = ["a", "b", "a", "b"]
        self.assertEqual(merge(base, ["a", "b"], base).lines, ["a", "b"])

    def test_edits(self):
        edits = compare(["a"], ["a", "a", "a"])
        self.assertEqual(sum(edit.b_stop - edit.b_start for edit in edits), 2)

    def test_diff_round_trip(self):
        for old, new in (("pq", "pqpq"), ("aba", "ababa"), ("aaaa", "aa"), ("xa", "xaa"), ("ab", "xb")):
            old, new = list(old), list(new)
            patch = parse_patch("\n".join(unified(old, new)))[0]
            self.assertEqual(apply_patch(old, patch), new)

    def test_similarity(self):
        self.assertEqual(similarity("ab", "abab"), 4 / 6)

    def test_from_nothing(self):
        self.assertEqual(unified([], ["a"])[2:], ["@@ -0,0 +1 @@", "+a"])

    def test_common_tail_is_still_found(self):
        edits = compare(list("xyzab"), list("wab"))
        self.assertEqual([(edit.a_start, edit.a_stop, edit.b_start, edit.b_stop) for edit in edits], [(0, 3, 0, 1)])

    def test_different_lines(self):
        self.assertEqual(merge(list("abc"), list("abxc"), list("yabc")).lines, list("yabxc"))
