import unittest

from tabular import ReadError, convert, read, sniff, split_record

from .orders import orders


class Fields(unittest.TestCase):
    def test_values(self):
        texts = ("12", "-3", "1.50", "1e3", "yes", "False", "", "pen", "1-2", "+.5")
        values = [12, -3, 1.5, 1000.0, True, False, None, "pen", "1-2", 0.5]
        self.assertEqual([convert(text) for text in texts], values)

    def test_quotes(self):
        self.assertEqual(split_record('a,"b,""c""",d'), [("a", False), ('b,"c"', True), ("d", False)])

    def test_empty_fields(self):
        self.assertEqual([field for field, _ in split_record(",a,")], ["", "a", ""])

    def test_behind_a_quote(self):
        with self.assertRaises(ReadError):
            split_record('"a" b,c')


class Reading(unittest.TestCase):
    def test_columns(self):
        self.assertEqual(orders().columns, ["order", "customer", "item", "pieces", "price", "paid"])

    def test_number_of_rows(self):
        self.assertEqual(len(orders()), 8)

    def test_quoted_stays_text(self):
        self.assertEqual(read('n\n"12"\n').rows, [("12",)])

    def test_quoted_lines(self):
        self.assertEqual(read('n,m\n"one\ntwo",3\n').rows, [("one\ntwo", 3)])

    def test_blank_lines_kept(self):
        self.assertEqual(read("a,b\n\n1,2\n", skip_blank=False).rows, [(None, None), (1, 2)])

    def test_blank_lines_skipped(self):
        self.assertEqual(read("a,b\n\n1,2\n").rows, [(1, 2)])

    def test_too_few(self):
        with self.assertRaisesRegex(ReadError, "line 3"):
            read("a,b\n1,2\n3\n")

    def test_filled(self):
        self.assertEqual(read("a,b\n3\n", fill=True).rows, [(3, None)])

    def test_no_header(self):
        with self.assertRaises(ReadError):
            read("# nothing\n")

    def test_sniff(self):
        self.assertEqual([sniff("a;b\n1,5;2\n"), sniff("a,b\n1,2\n"), sniff("a\n1\n")], [";", ",", ","])

    def test_open_quote(self):
        with self.assertRaises(ReadError):
            read('a\n"b\n')
