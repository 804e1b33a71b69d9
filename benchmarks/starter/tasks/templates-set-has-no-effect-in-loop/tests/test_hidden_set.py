import unittest

from templates import Engine, render_string
from templates.scope import Scope


class SetInLayers(unittest.TestCase):
    def test_loop_name_wins(self):
        source = "{% for n in ns %}{% set n to 'q' %}{{ n }}{% end %}-{{ n }}"
        self.assertEqual(render_string(source, ns=[1, 2], n="t"), "qq-t")

    def test_inner_loop(self):
        source = "{% for n in a %}{% for n in b %}{% set n to n|upper %}{{ n }}{% end %}{{ n }}{% end %}"
        self.assertEqual(render_string(source, a=["x", "y"], b=["i"]), "IxIy")

    def test_middle_layer(self):
        scope = Scope({"a": 1})
        scope.push(a=2)
        scope.push()
        scope.assign("a", 3)
        scope.pop()
        self.assertEqual(scope.lookup("a"), 3)
        scope.pop()
        self.assertEqual(scope.lookup("a"), 1)

    def test_outer_name_is_kept_over_a_loop(self):
        source = "{% set last to '' %}{% for n in ns %}{% set last to n %}{% end %}{{ last }}"
        self.assertEqual(render_string(source, ns=[1, 2, 3]), "3")

    def test_new_name_stays_in_its_layer(self):
        scope = Scope()
        scope.push()
        scope.assign("a", 1)
        scope.pop()
        self.assertEqual(scope.flat(), {})

    def test_include_keeps_its_names_inside(self):
        engine = Engine({"a": "{% include 'b' %}{{ x }}", "b": "{% set x to 2 %}{{ x }}"})
        self.assertEqual(engine.render("a", x=1), "21")
