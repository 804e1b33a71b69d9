import unittest

from records import FieldError, Integer, Layout, Text, read

LAYOUT = Layout([Text("name", 6), Integer("age", 3), Text("town", 5)])


class Bytes(unittest.TestCase):
    def test_read(self):
        line = b"Zo\xc3\xab   41K\xc3\xb6ln"
        self.assertEqual(dict(LAYOUT.parse(line)), {"name": "Zoë", "age": 41, "town": "Köln"})

    def test_written(self):
        line = LAYOUT.format({"name": "Zoë", "age": 41, "town": "Köln"})
        self.assertEqual(line, b"Zo\xc3\xab   41K\xc3\xb6ln")

    def test_round_trip(self):
        for name in ("éèê", "ß", "日本", "abc"):
            values = {"name": name, "age": 7, "town": "Ü"}
            line = LAYOUT.format(values)
            self.assertEqual((len(line), dict(LAYOUT.parse(line))), (14, values))

    def test_too_many_bytes(self):
        with self.assertRaises(FieldError):
            LAYOUT.format({"name": "ééééé"})

    def test_part_of_a_letter(self):
        with self.assertRaises(FieldError) as caught:
            LAYOUT.parse(b"abcde\xc3\xab 1")
        self.assertEqual(caught.exception.field, "name")

    def test_report_goes_on(self):
        report = read([b"abcde\xc3\xab 1", b"Zo\xc3\xab    1"], LAYOUT)
        self.assertEqual((len(report.problems), report.records[0]["age"]), (1, 1))

    def test_latin(self):
        layout = Layout([Text("a", 3), Text("b", 1)], "latin-1")
        self.assertEqual(layout.format({"a": "ööö", "b": "x"}), b"\xf6\xf6\xf6x")
        self.assertEqual(layout.parse(b"\xf6\xf6\xf6x")["b"], "x")

    def test_plain(self):
        self.assertEqual(LAYOUT.parse(b"Ada    36Bath")["town"], "Bath")
