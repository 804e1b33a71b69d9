import unittest

from graphs import Graph, GraphError


class Building(unittest.TestCase):
    def test_nodes_in_order(self):
        self.assertEqual(list(Graph.of("b a", "c", "a c")), ["b", "a", "c"])

    def test_weights(self):
        graph = Graph.of("a b 3", "b c")
        self.assertEqual((graph.weight("a", "b"), graph.weight("b", "c")), (3, 1))

    def test_neighbours(self):
        graph = Graph.of("a b", "a c", "b c")
        self.assertEqual((graph.successors("a"), graph.predecessors("c")), (["b", "c"], ["a", "b"]))

    def test_remove_node(self):
        graph = Graph.of("a b", "b c", "a c")
        graph.remove_node("b")
        self.assertEqual(graph.edges(), [("a", "c")])

    def test_unknown_node(self):
        with self.assertRaises(GraphError):
            Graph.of("a b").successors("x")

    def test_copy_is_apart(self):
        graph = Graph.of("a b")
        graph.copy().add_edge("b", "a")
        self.assertFalse(graph.has_edge("b", "a"))

    def test_subgraph(self):
        self.assertEqual(Graph.of("a b", "b c", "a c").subgraph("ac").edges(), [("a", "c")])
