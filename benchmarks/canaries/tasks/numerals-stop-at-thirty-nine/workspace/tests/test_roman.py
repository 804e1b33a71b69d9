import unittest

from roman import numeral


class Roman(unittest.TestCase):
    def test_four(self):
        self.assertEqual(numeral(4), "IV")
