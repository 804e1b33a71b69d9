import unittest

from templates import TemplateSyntaxError, render_string


class Elif(unittest.TestCase):
    def test_three_ways(self):
        source = "{% if n > 1 %}many{% elif n == 1 %}one{% else %}none{% end %}"
        self.assertEqual([render_string(source, n=n) for n in (2, 1, 0)], ["many", "one", "none"])

    def test_several(self):
        source = "{% if n == 1 %}a{% elif n == 2 %}b{% elif n == 3 %}c{% end %}."
        self.assertEqual([render_string(source, n=n) for n in (1, 2, 3, 4)], ["a.", "b.", "c.", "."])

    def test_first_that_holds(self):
        self.assertEqual(render_string("{% if a %}1{% elif b %}2{% elif b %}3{% end %}", a=0, b=1), "2")

    def test_later_conditions_are_not_looked_at(self):
        self.assertEqual(render_string("{% if a %}1{% elif b %}2{% elif missing %}3{% end %}", a=0, b=1), "2")

    def test_nested(self):
        source = "{% if a %}1{% elif b %}{% if c %}2{% elif b %}3{% end %}{% else %}4{% end %}"
        self.assertEqual(render_string(source, a=0, b=1, c=0), "3")

    def test_elif_outside(self):
        with self.assertRaises(TemplateSyntaxError):
            render_string("{% elif a %}x", a=1)

    def test_elif_after_else(self):
        with self.assertRaises(TemplateSyntaxError):
            render_string("{% if a %}1{% else %}2{% elif a %}3{% end %}", a=1)

    def test_plain_if(self):
        self.assertEqual(render_string("{% if a %}1{% end %}2", a=0), "2")
