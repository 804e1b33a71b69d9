import unittest

from templates.lexer import tokenize


class Lexer(unittest.TestCase):
    def texts(self, source):
        return [(token.kind, token.text) for token in tokenize(source)]

    def test_kinds(self):
        self.assertEqual(self.texts("a{{ b }}{% c %}"), [("text", "a"), ("output", "b"), ("tag", "c")])

    def test_comment_is_dropped(self):
        self.assertEqual(self.texts("a{# note #}b"), [("text", "a"), ("text", "b")])

    def test_trim_before(self):
        self.assertEqual(self.texts("a \n {%- c %}"), [("text", "a"), ("tag", "c")])

    def test_trim_after(self):
        self.assertEqual(self.texts("{% c -%}\n  b"), [("tag", "c"), ("text", "b")])

    def test_lines(self):
        self.assertEqual([token.line for token in tokenize("a\n{{ b }}\n\n{% c %}")], [1, 2, 2, 4])

    def test_plain(self):
        self.assertEqual(self.texts("only { text }"), [("text", "only { text }")])
