import unittest

from templates import TemplateSyntaxError, render_string
from templates.lexer import tokenize


class Lines(unittest.TestCase):
    def lines(self, source):
        return [token.line for token in tokenize(source)]

    def test_outputs(self):
        self.assertEqual(self.lines("{{ a }}\n{{ b }}\n{{ c }}"), [1, 1, 2, 2, 3])

    def test_long_comment(self):
        self.assertEqual(self.lines("{# 1\n2\n3 #}{{ a }}"), [3])

    def test_long_tags(self):
        self.assertEqual(self.lines("{% a\n%}{% b\n%}{% c %}"), [1, 2, 3])

    def test_texts(self):
        self.assertEqual(self.lines("x\n{{ a }}y\n\n{{ b }}z"), [1, 2, 2, 4, 4])

    def test_error(self):
        with self.assertRaises(TemplateSyntaxError) as caught:
            render_string("{{ a }}\n\n{{ a }}\n{% nonsense %}", a=1)
        self.assertEqual(caught.exception.line, 4)

    def test_one_tag(self):
        self.assertEqual(self.lines("a\nb\n{{ c }}"), [1, 3])

    def test_kinds(self):
        self.assertEqual([token.kind for token in tokenize("a{{ b\n}}{% c %}")], ["text", "output", "tag"])
