import unittest

from records import FieldError, Integer, Layout, LayoutError, Text

LAYOUT = Layout([Text("name", 6), Integer("age", 3), Text("town", 8)])


class Layouts(unittest.TestCase):
    def test_parse(self):
        self.assertEqual(dict(LAYOUT.parse(b"Ada    36London  ")), {"name": "Ada", "age": 36, "town": "London"})

    def test_line_ends_early(self):
        self.assertEqual(dict(LAYOUT.parse(b"Ada    36\n")), {"name": "Ada", "age": 36, "town": None})

    def test_too_long(self):
        with self.assertRaises(LayoutError):
            LAYOUT.parse(b"Ada    36London  X")

    def test_blanks_at_the_end(self):
        self.assertEqual(LAYOUT.parse(b"Ada    36London     ")["town"], "London")

    def test_format(self):
        self.assertEqual(LAYOUT.format({"name": "Ada", "age": 36}), b"Ada    36        ")

    def test_unknown_field(self):
        with self.assertRaises(LayoutError):
            LAYOUT.format({"nam": "Ada"})

    def test_offsets(self):
        self.assertEqual(LAYOUT.offsets(), {"name": 0, "age": 6, "town": 9})

    def test_same_name(self):
        with self.assertRaises(LayoutError):
            Layout([Text("a", 1), Text("a", 1)])

    def test_letters_of_two_bytes(self):
        line = "Zoë    41Köln    ".encode("utf-8")
        self.assertEqual(dict(LAYOUT.parse(line[:5] + line[6:])), {"name": "Zoë", "age": 41, "town": "Köln"})

    def test_letters_of_two_bytes_written(self):
        line = LAYOUT.format({"name": "Zoë", "age": 41, "town": "Köln"})
        self.assertEqual((len(line), line[6:9]), (17, b" 41"))

    def test_latin(self):
        layout = Layout([Text("a", 3), Text("b", 1)], "latin-1")
        self.assertEqual([layout.format({"a": "öö", "b": "x"}), layout.parse(b"\xf6\xf6 x")["a"]], [b"\xf6\xf6 x", "öö"])

    def test_not_decodable(self):
        with self.assertRaises(FieldError):
            LAYOUT.parse(b"\xff")
