import unittest

from graphs import (
    CycleError,
    Graph,
    find_cycle,
    layers,
    topological_order,
    transitive_closure,
    transitive_reduction,
)


class Ordering(unittest.TestCase):
    def test_forward(self):
        self.assertEqual(topological_order(Graph.of("b c", "a b", "a c")), ["a", "b", "c"])

    def test_cycle(self):
        with self.assertRaises(CycleError) as caught:
            topological_order(Graph.of("a b", "b c", "c b"))
        self.assertEqual(caught.exception.cycle, ["b", "c", "b"])

    def test_find_no_cycle(self):
        self.assertIsNone(find_cycle(Graph.of("a b", "a c", "b c")))

    def test_layers(self):
        self.assertEqual(layers(Graph.of("a b", "b c", "a c", "a d")), [["a"], ["b", "d"], ["c"]])

    def test_layers_of_nothing(self):
        self.assertEqual(layers(Graph()), [])


class Reducing(unittest.TestCase):
    def test_closure(self):
        self.assertEqual(
            transitive_closure(Graph.of("a b", "b c")).edges(), [("a", "b"), ("a", "c"), ("b", "c")]
        )

    def test_reduction(self):
        self.assertEqual(
            transitive_reduction(Graph.of("a b", "b c", "a c")).edges(), [("a", "b"), ("b", "c")]
        )
