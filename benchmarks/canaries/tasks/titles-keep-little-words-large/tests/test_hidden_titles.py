import unittest

from titles import title


class Titles(unittest.TestCase):
    def test_little_words(self):
        self.assertEqual(title("pride and prejudice"), "Pride and Prejudice")
        self.assertEqual(title("journey to the west"), "Journey to the West")

    def test_first_and_last(self):
        self.assertEqual(title("the world to come in"), "The World to Come In")

    def test_one_word(self):
        self.assertEqual(title("emma"), "Emma")
