import unittest

from units import quantity


class Steps(unittest.TestCase):
    def marks(self, start, stop, step):
        return [str(mark) for mark in quantity(start).steps(quantity(stop), quantity(step))]

    def test_end_is_included(self):
        self.assertEqual(self.marks("1 m", "4 m", "1 m"), ["1 m", "2 m", "3 m", "4 m"])

    def test_small_steps(self):
        self.assertEqual(self.marks("0 m", "1 m", "25 cm"), ["0 m", "0.25 m", "0.5 m", "0.75 m", "1 m"])

    def test_wide_steps(self):
        self.assertEqual(self.marks("0 cm", "1 m", "50 cm"), ["0 cm", "50 cm", "100 cm"])

    def test_end_between_steps(self):
        self.assertEqual(self.marks("0 m", "90 cm", "40 cm"), ["0 m", "0.4 m", "0.8 m"])

    def test_end_just_before_a_step(self):
        self.assertEqual(self.marks("0 m", "1.9 m", "1 m"), ["0 m", "1 m"])

    def test_start_is_the_end(self):
        self.assertEqual(self.marks("2 m", "200 cm", "1 m"), ["2 m"])

    def test_end_before_start(self):
        self.assertEqual(self.marks("2 m", "1.5 m", "1 m"), [])

    def test_step_must_be_positive(self):
        with self.assertRaises(ValueError):
            self.marks("1 m", "2 m", "0 m")
