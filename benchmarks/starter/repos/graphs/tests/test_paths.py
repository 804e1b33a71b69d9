import unittest

from graphs import (
    Graph,
    NoPath,
    distances,
    farthest,
    hops,
    reachable,
    shortest_path,
    simple_paths,
    widest_path,
)


def grid(size):
    """Nodes r0c0 …; every edge leads right or down and costs 1 to 3."""
    graph = Graph()
    for row in range(size):
        for column in range(size):
            here = f"r{row}c{column}"
            if column + 1 < size:
                graph.add_edge(here, f"r{row}c{column + 1}", (row + column) % 3 + 1)
            if row + 1 < size:
                graph.add_edge(here, f"r{row + 1}c{column}", (row * column) % 3 + 1)
    return graph


class Searching(unittest.TestCase):
    def test_hops(self):
        self.assertEqual(hops(Graph.of("a b", "b c", "a c", "c d"), "a"), {"a": 0, "b": 1, "c": 1, "d": 2})

    def test_farthest(self):
        self.assertEqual(farthest(Graph.of("a b", "a c", "b d", "c e"), "a"), (2, ["d", "e"]))

    def test_reachable(self):
        self.assertEqual(reachable(Graph.of("a b", "b c", "d a"), "a"), {"b", "c"})

    def test_reachable_itself(self):
        self.assertIn("a", reachable(Graph.of("a b", "b a"), "a"))


class Shortest(unittest.TestCase):
    def test_detour(self):
        graph = Graph.of("a b 2", "b c 2", "a c 5")
        self.assertEqual(shortest_path(graph, "a", "c"), (4, ["a", "b", "c"]))

    def test_itself(self):
        self.assertEqual(shortest_path(Graph.of("a b"), "a", "a"), (0, ["a"]))

    def test_grid(self):
        cost, path = shortest_path(grid(6), "r0c0", "r5c5")
        self.assertEqual((cost, len(path)), (12, 11))

    def test_no_path(self):
        with self.assertRaises(NoPath):
            shortest_path(Graph.of("a b"), "b", "a")

    def test_distances(self):
        self.assertEqual(distances(grid(2), "r0c0"), {"r0c0": 0, "r0c1": 1, "r1c0": 1, "r1c1": 2})


class Widest(unittest.TestCase):
    def test_detour(self):
        graph = Graph.of("a b 5", "b c 4", "a c 2")
        self.assertEqual(widest_path(graph, "a", "c"), (4, ["a", "b", "c"]))

    def test_no_path(self):
        with self.assertRaises(NoPath):
            widest_path(Graph.of("a b"), "b", "a")


class Simple(unittest.TestCase):
    def test_each_path(self):
        graph = Graph.of("a b", "a c", "b d", "c d", "b c")
        self.assertEqual(["".join(path) for path in simple_paths(graph, "a", "d")], ["abd", "abcd", "acd"])

    def test_number_in_grid(self):
        self.assertEqual(sum(1 for _ in simple_paths(grid(4), "r0c0", "r3c3")), 20)

    def test_longest(self):
        graph = Graph.of("a b", "b c", "a c")
        self.assertEqual([len(path) for path in simple_paths(graph, "a", "c", longest=1)], [2])

    def test_cycle_on_the_way(self):
        graph = Graph.of("a b", "b a", "b c")
        self.assertEqual(list(simple_paths(graph, "a", "c")), [["a", "b", "c"]])
