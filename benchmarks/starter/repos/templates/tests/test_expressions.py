import unittest

from templates import TemplateSyntaxError, UndefinedName, render_string
from templates.expressions import parse_condition, resolve, split_words
from templates.scope import Scope


class Words(unittest.TestCase):
    def test_quotes_stay_whole(self):
        self.assertEqual(split_words("a|join:'x y'"), ["a", "|", "join", ":", "'x y'"])

    def test_operators(self):
        self.assertEqual(split_words("a>=3 and b"), ["a", ">=", "3", "and", "b"])


class Resolve(unittest.TestCase):
    def test_literals(self):
        scope = Scope()
        self.assertEqual([resolve(word, scope) for word in ("1", "2.5", "'x'", "true", "none")], [1, 2.5, "x", True, None])

    def test_path(self):
        scope = Scope({"a": {"b": [10, 20]}})
        self.assertEqual(resolve("a.b.1", scope), 20)

    def test_attribute(self):
        self.assertEqual(resolve("z.imag", Scope({"z": 1 + 2j})), 2.0)

    def test_missing_member(self):
        with self.assertRaises(UndefinedName):
            resolve("a.c", Scope({"a": {}}))


class Conditions(unittest.TestCase):
    def holds(self, text, **names):
        return parse_condition(split_words(text)).holds(Scope(names))

    def test_and(self):
        self.assertFalse(self.holds("a and b", a=1, b=0))

    def test_or(self):
        self.assertTrue(self.holds("a or b", a=0, b=1))

    def test_not(self):
        self.assertTrue(self.holds("not a", a=[]))

    def test_compare(self):
        self.assertTrue(self.holds("a >= 3", a=3))

    def test_in(self):
        self.assertTrue(self.holds("'x' in a", a="xyz"))

    def test_missing(self):
        with self.assertRaises(TemplateSyntaxError):
            self.holds("a ==", a=1)


class Filters(unittest.TestCase):
    def test_chain(self):
        self.assertEqual(render_string("{{ a|trim|upper }}", a=" x "), "X")

    def test_join(self):
        self.assertEqual(render_string("{{ a|join:'-' }}", a=[1, 2]), "1-2")

    def test_truncate(self):
        self.assertEqual(render_string("{{ a|truncate:6 }}", a="abcdefgh"), "abc...")

    def test_default(self):
        self.assertEqual(render_string("{{ a|default:'x' }}", a=None), "x")

    def test_default_zero(self):
        self.assertEqual(render_string("{{ a|default:'x' }}", a=0), "0")

    def test_sort_by_member(self):
        rows = [{"n": 2}, {"n": 1}]
        self.assertEqual(render_string("{% for r in a|sort:'n' %}{{ r.n }}{% end %}", a=rows), "12")

    def test_indent(self):
        self.assertEqual(render_string("{{ a|indent:2 }}", a="x\ny\n\nz"), "x\n  y\n\n  z")

    def test_escape(self):
        self.assertEqual(render_string("{{ a|escape }}", a="<b> & 'c'"), "&lt;b&gt; &amp; 'c'")

    def test_unknown(self):
        with self.assertRaises(TemplateSyntaxError):
            render_string("{{ a|nope }}", a=1)
