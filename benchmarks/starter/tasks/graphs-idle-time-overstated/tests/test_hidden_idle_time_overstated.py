import unittest

from graphs import Graph, plan

SITE = Graph.of("base walls", "base fence", "walls roof", "roof done", "fence done")
DAYS = {"base": 3, "walls": 6, "fence": 2, "roof": 4, "done": 1}


class Slack(unittest.TestCase):
    def test_step_with_two_behind_it(self):
        self.assertEqual(plan(SITE, DAYS)["base"].slack, 0)

    def test_latest(self):
        steps = plan(SITE, DAYS)
        self.assertEqual([steps[name].latest for name in ("base", "walls", "fence", "roof", "done")], [0, 3, 11, 9, 13])

    def test_critical(self):
        self.assertEqual(plan(SITE, DAYS).critical, ["base", "walls", "roof", "done"])

    def test_chart(self):
        chart = plan(SITE, DAYS).chart().splitlines()
        self.assertEqual(chart[0], "base  |###")
        self.assertIn("fence |   ##........", chart)

    def test_order_of_edges_does_not_matter(self):
        turned = Graph.of("base fence", "base walls", "fence done", "walls roof", "roof done")
        self.assertEqual(plan(turned, DAYS)["base"].slack, 0)

    def test_two_ends(self):
        steps = plan(Graph.of("a b", "a c", "b d"), {"a": 1, "b": 2, "c": 1, "d": 5})
        self.assertEqual([steps[name].slack for name in "abcd"], [0, 0, 6, 0])

    def test_earliest(self):
        steps = plan(SITE, DAYS)
        self.assertEqual([steps[name].earliest for name in ("base", "walls", "fence", "roof", "done")], [0, 3, 3, 9, 13])

    def test_length(self):
        self.assertEqual(plan(SITE, DAYS).days, 14)

    def test_single(self):
        self.assertEqual(plan(Graph.of("a"), {"a": 4}).critical, ["a"])
