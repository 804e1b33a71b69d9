import unittest

from tokens import EvaluationError, evaluate


class Arithmetic(unittest.TestCase):
    def test_precedence(self):
        self.assertEqual(evaluate("1 + 2 * 3 ^ 2"), 19)

    def test_left_to_right(self):
        self.assertEqual(evaluate("10 - 4 - 3"), 3)

    def test_power_to_the_right(self):
        self.assertEqual(evaluate("2 ^ 3 ^ 2"), 512)

    def test_sign(self):
        self.assertEqual(evaluate("-2 ^ 2 + 1"), -3)

    def test_floor_division(self):
        self.assertEqual(evaluate("17 // 5 * 2"), 6)

    def test_remainder(self):
        self.assertEqual(evaluate("17 % 5"), 2)

    def test_texts(self):
        self.assertEqual(evaluate("'a' + \"b\\n\""), "ab\n")

    def test_operands_that_do_not_fit(self):
        with self.assertRaises(EvaluationError):
            evaluate("1 + 'a'")


class Logic(unittest.TestCase):
    def test_comparison(self):
        self.assertIs(evaluate("2 >= 2"), True)
        self.assertIs(evaluate("2 != 2"), False)

    def test_chain(self):
        self.assertIs(evaluate("0 < x <= 10", {"x": 10}), True)

    def test_chain_broken_at_once(self):
        self.assertIs(evaluate("0 < x < y", {"x": 0}), False)

    def test_not_and_or(self):
        self.assertIs(evaluate("not true and false or true"), True)

    def test_short_circuit(self):
        self.assertEqual(evaluate("0 and missing"), 0)

    def test_choice(self):
        self.assertEqual(evaluate("'big' if n > 9 else 'small'", {"n": 3}), "small")


class Names(unittest.TestCase):
    def test_nested(self):
        self.assertEqual(evaluate("order.total * 2", {"order": {"total": 4}}), 8)

    def test_unknown(self):
        with self.assertRaises(EvaluationError):
            evaluate("order.tax", {"order": {}})

    def test_no_parts(self):
        with self.assertRaisesRegex(EvaluationError, "order has no parts"):
            evaluate("order.total", {"order": 4})


class Calls(unittest.TestCase):
    def test_builtin(self):
        self.assertEqual(evaluate("clamp(15, 0, 10) + max(1, 2)"), 12)

    def test_own_function(self):
        self.assertEqual(evaluate("twice(4)", functions={"twice": lambda x: 2 * x}), 8)

    def test_wrong_arguments(self):
        with self.assertRaises(EvaluationError):
            evaluate("abs(1, 2)")

    def test_first(self):
        self.assertEqual(evaluate("first(none, 0, 3)"), 0)
