import unittest

from textwrapper import bullets, heading, paginate, table, wrap

from . import show


class PagesTest(unittest.TestCase):
    def test_one_page(self):
        pages = paginate([["a"], ["b"]], 6, width=12, title="T")
        self.assertEqual(show(pages[0]), ["     T", "a", "", "b", "", " - 1 of 1 -"])

    def test_block_is_kept_together(self):
        pages = paginate([["a", "b"], ["c", "d"]], 6, width=10)
        self.assertEqual([page[1:3] for page in pages], [["a", "b"], ["c", "d"]])

    def test_long_block(self):
        self.assertEqual(len(paginate([[str(number) for number in range(25)]], 12)), 3)

    def test_no_room(self):
        with self.assertRaises(ValueError):
            paginate([], 2)

    def test_report(self):
        rows = [("Monday", "1,200", "dry"), ("Tuesday", "80", "wet"), ("Sunday", "", "closed")]
        blocks = [
            heading("Visitors of the week", 40),
            wrap("How many people came on each day, and what the weather was like.", 40),
            table(rows, header=("day", "people", "weather")),
            bullets(["the bridge was closed on Tuesday", "counted by hand"], 40),
        ]
        pages = paginate(blocks, 12, width=40, title="Report")
        for page in pages:
            show(page)
        self.assertIn("Monday    1,200  dry", pages[0] + pages[1])
        self.assertIn("Tuesday      80  wet", pages[0] + pages[1])
