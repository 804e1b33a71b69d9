import unittest

from graphs import Graph, GraphError, NoPath, shortest_path, widest_path


class Goals(unittest.TestCase):
    def test_direct(self):
        self.assertEqual(shortest_path(Graph.of("a b 7"), "a", "b"), (7, ["a", "b"]))

    def test_itself(self):
        self.assertEqual(shortest_path(Graph.of("a b 7"), "b", "b"), (0, ["b"]))

    def test_cheapest_of_three(self):
        graph = Graph.of("a b 4", "a c 1", "c b 2", "a d 1", "d b 9", "b e 1")
        self.assertEqual(shortest_path(graph, "a", "e"), (4, ["a", "c", "b", "e"]))

    def test_wrong_direction(self):
        with self.assertRaises(NoPath):
            shortest_path(Graph.of("a b"), "b", "a")

    def test_apart(self):
        with self.assertRaises(NoPath):
            shortest_path(Graph.of("a b", "c d"), "a", "d")

    def test_unknown_goal(self):
        with self.assertRaises(NoPath):
            shortest_path(Graph.of("a b"), "a", "x")

    def test_unknown_start(self):
        with self.assertRaises(GraphError):
            shortest_path(Graph.of("a b"), "x", "a")

    def test_widest(self):
        self.assertEqual(widest_path(Graph.of("a b 7", "b c 3"), "a", "c"), (3, ["a", "b", "c"]))
