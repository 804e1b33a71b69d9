import unittest

from graphs import Graph, simple_paths


class Collected(unittest.TestCase):
    def setUp(self):
        self.graph = Graph.of("a b", "a c", "b d", "c d", "b c", "d a")

    def test_list(self):
        found = list(simple_paths(self.graph, "a", "d"))
        self.assertEqual(found, [["a", "b", "d"], ["a", "b", "c", "d"], ["a", "c", "d"]])

    def test_by_length(self):
        found = sorted(simple_paths(self.graph, "a", "d"), key=len, reverse=True)
        self.assertEqual(found[0], ["a", "b", "c", "d"])

    def test_kept_while_going_on(self):
        paths = simple_paths(self.graph, "a", "d")
        first = next(paths)
        second = next(paths)
        self.assertEqual((first, second), (["a", "b", "d"], ["a", "b", "c", "d"]))

    def test_changed_by_the_caller(self):
        found = []
        for path in simple_paths(self.graph, "a", "d"):
            found.append("".join(path))
            path.clear()
        self.assertEqual(found, ["abd", "abcd", "acd"])

    def test_longest(self):
        self.assertEqual(list(simple_paths(self.graph, "a", "d", longest=2)), [["a", "b", "d"], ["a", "c", "d"]])

    def test_itself(self):
        self.assertEqual(list(simple_paths(self.graph, "a", "a")), [["a"]])

    def test_none(self):
        self.assertEqual(list(simple_paths(Graph.of("a b", "c b"), "a", "c")), [])

    def test_one_by_one(self):
        self.assertEqual(["".join(path) for path in simple_paths(self.graph, "b", "a")], ["bda", "bcda"])
