import unittest

from tokens import EvaluationError, ParseError, evaluate, names_in, parse, tokenize, unparse


class WholeDivision(unittest.TestCase):
    def test_token(self):
        tokens = [(token.kind, token.text) for token in tokenize("a//b / c")]
        self.assertEqual([text for kind, text in tokens if kind == "operator"], ["//", "/"])

    def test_value(self):
        self.assertEqual([evaluate("n // 4", {"n": n}) for n in (3, 4, 11, -1)], [0, 1, 2, -1])

    def test_left_to_right(self):
        self.assertEqual(evaluate("100 // 7 // 2"), 7)
        self.assertEqual(evaluate("17 // 5 * 2"), 6)

    def test_before_sums(self):
        self.assertEqual(evaluate("1 + 7 // 2"), 4)

    def test_after_power_and_sign(self):
        self.assertEqual(evaluate("-2 ^ 2 // 3"), -2)

    def test_zero(self):
        with self.assertRaises(EvaluationError):
            evaluate("1 // 0")

    def test_print(self):
        for text in ("a // b % c", "a // (b // c)", "(a + b) // c", "a - b // 2"):
            self.assertEqual(unparse(parse(text)), text)

    def test_names(self):
        self.assertEqual(names_in(parse("pieces // pack")), ["pieces", "pack"])

    def test_plain_division(self):
        self.assertEqual(evaluate("7 / 2"), 3.5)

    def test_nonsense(self):
        for text in ("1 / / 2", "1 /", "* 2"):
            with self.assertRaises(ParseError):
                parse(text)
