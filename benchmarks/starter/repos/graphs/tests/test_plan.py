import unittest

from graphs import CycleError, Graph, GraphError, plan

HOUSE = Graph.of("plan dig", "dig walls", "walls roof", "walls pipes", "roof move", "pipes move")
DAYS = {"plan": 4, "dig": 2, "walls": 5, "roof": 3, "pipes": 1, "move": 1}


class Planning(unittest.TestCase):
    def test_length(self):
        self.assertEqual(plan(HOUSE, DAYS).days, 15)

    def test_begin(self):
        house = plan(HOUSE, DAYS)
        self.assertEqual([house[name].earliest for name in ("plan", "dig", "move")], [0, 4, 14])

    def test_slack(self):
        self.assertEqual(plan(HOUSE, DAYS)["pipes"].slack, 2)

    def test_critical(self):
        self.assertEqual(plan(HOUSE, DAYS).critical, ["plan", "dig", "walls", "roof", "move"])

    def test_busiest(self):
        self.assertEqual(plan(HOUSE, DAYS).busiest(), (11, 2))

    def test_chart(self):
        chart = plan(Graph.of("a c", "b c"), {"a": 3, "b": 1, "c": 2}).chart()
        self.assertEqual(chart.splitlines(), ["a |###", "b |#..", "c |   ##"])

    def test_no_duration(self):
        with self.assertRaises(GraphError):
            plan(Graph.of("a b"), {"a": 1})

    def test_cycle(self):
        with self.assertRaises(CycleError):
            plan(Graph.of("a b", "b a"), {"a": 1, "b": 1})
