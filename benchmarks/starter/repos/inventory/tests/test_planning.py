import unittest

from inventory import Costing, ReorderRule, proposals, render, value_of

from .stock import filled


class Reordering(unittest.TestCase):
    def test_enough(self):
        self.assertEqual(proposals(filled(), [ReorderRule("nut", 50, 100)]), {})

    def test_up_to_target(self):
        self.assertEqual(proposals(filled(), [ReorderRule("tape", 10, 20)]), {"tape": 13})

    def test_whole_packs(self):
        self.assertEqual(proposals(filled(), [ReorderRule("tape", 10, 20, pack=5)]), {"tape": 15})

    def test_reserved_counts_as_gone(self):
        store = filled()
        store.reserve("o1", "nut", 60)
        self.assertEqual(proposals(store, [ReorderRule("nut", 50, 100)]), {"nut": 80})


class Value(unittest.TestCase):
    def test_by_batch(self):
        self.assertEqual(value_of(filled())["bolt"], 500)

    def test_expired_is_worthless(self):
        self.assertEqual(value_of(filled(), today="2024-02-15")["glue"], 2500)

    def test_lowest(self):
        self.assertEqual(value_of(filled(), Costing.LOWEST)["bolt"], 450)


class Rendering(unittest.TestCase):
    def test_columns(self):
        self.assertEqual(render([("a", 5), ("long", 10)], ("x", "n")), "x      n\na      5\nlong  10")
