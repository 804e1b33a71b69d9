import unittest

from textwrapper import boxed, bullets, columns, definitions, heading, numbered, rule, side_by_side, table

from . import show

FRUIT = [("apples", 12, "4.50"), ("pears", 7, "12.25"), ("quinces", 130, "0.75")]


class ListTest(unittest.TestCase):
    def test_heading(self):
        self.assertEqual(show(heading("A day", 20)), ["A day", "====="])

    def test_bullets(self):
        items = ["one two three", ("four", ["five", "six"])]
        self.assertEqual(show(bullets(items, 10)), ["* one two", "  three", "* four", "  * five", "  * six"])

    def test_numbered(self):
        lines = show(numbered([f"item {number}" for number in range(12)], 40))
        self.assertEqual((lines[0], lines[11]), (" 1. item 0", "12. item 11"))

    def test_definitions(self):
        lines = show(definitions("name: the name of it\nid: a number\n  that is unique", 24))
        self.assertEqual(lines, ["name  the name of it", "id    a number that is", "      unique"])

    def test_meaning_with_colon(self):
        self.assertEqual(show(definitions("at: 10:30", 20)), ["at  10:30"])

    def test_wide_term(self):
        lines = show(definitions("a: x\nextraordinary: y", 20, widest=5))
        self.assertEqual(lines, ["a  x", "extraordinary", "   y"])

    def test_no_term(self):
        with self.assertRaises(ValueError):
            definitions("nothing", 20)


class TableTest(unittest.TestCase):
    def test_amounts_to_the_right(self):
        lines = show(table(FRUIT))
        self.assertEqual(lines[0], "apples    12   4.50")

    def test_header(self):
        lines = show(table(FRUIT, header=("fruit", "count", "price")))
        self.assertEqual(lines[:3], ["fruit    count  price", "-------  -----  -----", "apples      12   4.50"])

    def test_align(self):
        self.assertEqual(show(table([("a", 1), ("bbb", 22)], align="cl")), [" a   1", "bbb  22"])

    def test_narrow(self):
        lines = show(table(FRUIT, width=17))
        self.assertEqual(lines[2], "quin…  130   0.75")

    def test_short_rows(self):
        self.assertEqual(show(table([("a",), ("b", "c")])), ["a", "b  c"])

    def test_many_rows(self):
        rows = [(f"row {number}", number, number * number) for number in range(40)]
        lines = show(table(rows, header=("name", "number", "square")))
        self.assertEqual(len(lines), 42)


class ColumnsTest(unittest.TestCase):
    def test_downwards(self):
        self.assertEqual(show(columns(list("abcde"), 7)), ["a  c  e", "b  d"])

    def test_full(self):
        self.assertEqual(show(columns(list("abcdef"), 7)), ["a  c  e", "b  d  f"])

    def test_one_column(self):
        self.assertEqual(show(columns(["aaaa", "bb"], 5)), ["aaaa", "bb"])

    def test_many(self):
        lines = show(columns([f"name-{number}" for number in range(50)], 72))
        self.assertEqual(lines[0].split()[:2], ["name-0", "name-7"])

    def test_side_by_side(self):
        self.assertEqual(show(side_by_side("a b c", "d", 9, gap=4)), ["a b    d", "c"])

    def test_boxed(self):
        self.assertEqual(show(boxed(["one"], title="T")), ["+- T -+", "| one |", "+-----+"])
        self.assertEqual(show(boxed(["one two"], 10)), ["+--------+", "| one t… |", "+--------+"])

    def test_rule(self):
        self.assertEqual(show([rule(11), rule(11, "a b")]), ["-" * 11, "--- a b ---"])
