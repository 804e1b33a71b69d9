import unittest

from wordcount import count


class Counting(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(count(""), {})

    def test_case(self):
        self.assertEqual(count("The cat saw the dog", 2), {"the": 2, "cat": 1, "saw": 1, "dog": 1})
