import unittest

from tokens import EvaluationError, evaluate


class Chains(unittest.TestCase):
    def test_second_link(self):
        self.assertIs(evaluate("1 < 5 < 3"), False)

    def test_last_of_many(self):
        self.assertIs(evaluate("1 < 2 < 3 < 4 < 4"), False)
        self.assertIs(evaluate("1 < 2 < 3 < 4 <= 4"), True)

    def test_neighbours_are_compared(self):
        self.assertIs(evaluate("1 < 5 > 3"), True)
        self.assertIs(evaluate("5 > 1 < 3"), True)
        self.assertIs(evaluate("1 < 5 < 3 < 9"), False)

    def test_limits(self):
        rule = "low <= x <= high"
        self.assertEqual(
            [evaluate(rule, {"low": 2, "x": x, "high": 4}) for x in range(1, 6)], [False, True, True, True, False]
        )

    def test_single_comparison(self):
        self.assertIs(evaluate("3 > 2"), True)
        self.assertIs(evaluate("2 > 3"), False)

    def test_behind_a_broken_link(self):
        self.assertIs(evaluate("1 > 2 > missing"), False)

    def test_operands_that_do_not_fit(self):
        with self.assertRaises(EvaluationError):
            evaluate("1 < 2 < 'a'")
