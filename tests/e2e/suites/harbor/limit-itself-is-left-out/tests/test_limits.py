import sys
import unittest

sys.path.insert(0, "/app")

from limits import reaches


class Reaching(unittest.TestCase):
    def test_limit_itself(self):
        self.assertTrue(reaches(2, 2))
        self.assertTrue(reaches(0, 0))

    def test_beyond_and_below(self):
        self.assertTrue(reaches(8, 7))
        self.assertFalse(reaches(6, 7))


if __name__ == "__main__":
    unittest.main()
