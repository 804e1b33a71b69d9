import unittest

from tokens import EvaluationError, evaluate


class Division(unittest.TestCase):
    def test_operators(self):
        for text in ("1 / 0", "1 // 0", "1 % 0", "0 ^ -1"):
            with self.assertRaises(EvaluationError):
                evaluate(text)

    def test_floats(self):
        with self.assertRaises(EvaluationError):
            evaluate("x / y", {"x": 1.5, "y": 0.0})

    def test_message(self):
        with self.assertRaisesRegex(EvaluationError, "7 / 0: division by zero"):
            evaluate("7 / 0")

    def test_cause(self):
        with self.assertRaises(EvaluationError) as caught:
            evaluate("7 % 0")
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)

    def test_operands(self):
        with self.assertRaisesRegex(EvaluationError, "operands do not fit"):
            evaluate("'a' - 1")

    def test_function(self):
        with self.assertRaisesRegex(EvaluationError, "mean"):
            evaluate("mean()")

    def test_not_reached(self):
        self.assertEqual(evaluate("1 / n if n else 0", {"n": 0}), 0)
