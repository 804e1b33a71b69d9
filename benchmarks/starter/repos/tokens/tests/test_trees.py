import unittest

from tokens import ParseError, names_in, parse, unparse


class Parsing(unittest.TestCase):
    def test_not_finished(self):
        for text in ("1 +", "(1", "f(1,", "a if b", ""):
            with self.assertRaises(ParseError):
                parse(text)

    def test_too_much(self):
        with self.assertRaises(ParseError):
            parse("1 2")


class Names(unittest.TestCase):
    def test_order_and_once(self):
        self.assertEqual(names_in(parse("b + a.x * b - f(c)")), ["b", "a.x", "c"])


class Printing(unittest.TestCase):
    def test_needed_parentheses_stay(self):
        for text in ("(1 + 2) * 3", "a - (b - c)", "(-2) ^ 2", "not (a and b)", "(a < b) < c"):
            self.assertEqual(unparse(parse(text)), text)

    def test_needless_parentheses_go(self):
        self.assertEqual(unparse(parse("((a) * (b)) + (c)")), "a * b + c")

    def test_choice(self):
        text = "a if b else (c if d else e)"
        self.assertEqual(unparse(parse(text)), "a if b else c if d else e")

    def test_texts(self):
        text = "'it\\'s' + 'x'"
        self.assertEqual(unparse(parse(text)), text)
