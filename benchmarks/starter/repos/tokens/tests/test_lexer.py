import unittest

from tokens import ParseError, tokenize


def kinds(text):
    return [(token.kind, token.text) for token in tokenize(text)][:-1]


class Tokenizing(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(kinds("a + 12"), [("name", "a"), ("operator", "+"), ("number", "12")])

    def test_long_operators(self):
        self.assertEqual([text for _, text in kinds("a<=b!=c//d")], ["a", "<=", "b", "!=", "c", "//", "d"])

    def test_dotted_name(self):
        self.assertEqual(kinds("order.total"), [("name", "order.total")])

    def test_keywords(self):
        self.assertEqual(kinds("not android"), [("keyword", "not"), ("name", "android")])

    def test_comment(self):
        self.assertEqual(kinds("1 # one\n2"), [("number", "1"), ("number", "2")])

    def test_positions(self):
        self.assertEqual([token.position for token in tokenize("ab  + c")], [0, 4, 6, 7])

    def test_unknown_character(self):
        with self.assertRaises(ParseError) as caught:
            list(tokenize("a ? b"))
        self.assertEqual(caught.exception.position, 2)
