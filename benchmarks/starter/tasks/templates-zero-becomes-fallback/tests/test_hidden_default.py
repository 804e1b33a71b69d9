import unittest

from templates import render_string
from templates.filters import find_filter


class DefaultFilter(unittest.TestCase):
    def show(self, value):
        return render_string("{{ a|default:'x' }}", a=value)

    def test_zero(self):
        self.assertEqual(self.show(0), "0")

    def test_false(self):
        self.assertEqual(self.show(False), "False")

    def test_empty_text(self):
        self.assertEqual(self.show(""), "")

    def test_empty_list_is_kept(self):
        self.assertEqual(find_filter("default")([], "x"), [])

    def test_none(self):
        self.assertEqual(self.show(None), "x")

    def test_value(self):
        self.assertEqual(self.show(7), "7")

    def test_number_as_fallback(self):
        self.assertEqual(render_string("{{ a|default:5|fixed:1 }}", a=None), "5.0")
