import unittest

from templates import Engine, TemplateError, TemplateNotFound, TemplateSyntaxError, render_string


class Tags(unittest.TestCase):
    def test_if_branches(self):
        source = "{% if n > 1 %}many{% elif n == 1 %}one{% else %}none{% end %}"
        self.assertEqual([render_string(source, n=n) for n in (2, 1, 0)], ["many", "one", "none"])

    def test_for(self):
        self.assertEqual(render_string("{% for x in xs %}[{{ x }}]{% end %}", xs="ab"), "[a][b]")

    def test_for_else(self):
        self.assertEqual(render_string("{% for x in xs %}{{ x }}{% else %}empty{% end %}", xs=[]), "empty")

    def test_for_pairs(self):
        self.assertEqual(render_string("{% for k, v in xs %}{{ k }}={{ v }};{% end %}", xs=[("a", 1), ("b", 2)]), "a=1;b=2;")

    def test_loop_last(self):
        source = "{% for x in xs %}{{ x }}{% if not loop.last %}, {% end %}{% end %}"
        self.assertEqual(render_string(source, xs=[1, 2, 3]), "1, 2, 3")

    def test_set_is_kept_over_a_loop(self):
        source = "{% set seen to 'no' %}{% for x in xs %}{% set seen to x %}{% end %}{{ seen }}"
        self.assertEqual(render_string(source, xs=[1, 2]), "2")

    def test_unclosed(self):
        with self.assertRaises(TemplateSyntaxError):
            render_string("{% if a %}x", a=1)

    def test_unknown_tag(self):
        with self.assertRaises(TemplateSyntaxError) as caught:
            render_string("a\n{% nope %}")
        self.assertEqual(caught.exception.line, 2)


class Engines(unittest.TestCase):
    def test_shared_values(self):
        self.assertEqual(Engine({"a": "{{ x }}{{ y }}"}, x=1, y=2).render("a", y=3), "13")

    def test_include(self):
        engine = Engine({"a": "<{% include 'b' %}>", "b": "{{ x }}"})
        self.assertEqual(engine.render("a", x=1), "<1>")

    def test_extends(self):
        engine = Engine({"base": "({% block body %}base{% end %})", "a": "{% extends 'base' %}{% block body %}child{% end %}"})
        self.assertEqual([engine.render("base"), engine.render("a")], ["(base)", "(child)"])

    def test_replace(self):
        engine = Engine({"a": "old"})
        engine.render("a")
        engine.add("a", "new")
        self.assertEqual(engine.render("a"), "new")

    def test_missing(self):
        with self.assertRaises(TemplateNotFound):
            Engine().render("a")

    def test_circle(self):
        with self.assertRaises(TemplateError):
            Engine({"a": "{% include 'a' %}"}).render("a")

    def test_renders_after_a_circle(self):
        engine = Engine({"a": "{% include 'a' %}", "b": "fine"})
        with self.assertRaises(TemplateError):
            engine.render("a")
        self.assertEqual(engine.render("b"), "fine")
