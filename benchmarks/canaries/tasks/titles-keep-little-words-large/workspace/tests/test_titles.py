import unittest

from titles import title


class Title(unittest.TestCase):
    def test_two_words(self):
        self.assertEqual(title("moby dick"), "Moby Dick")
