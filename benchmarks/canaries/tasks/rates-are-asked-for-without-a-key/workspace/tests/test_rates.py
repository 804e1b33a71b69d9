import unittest

import rates


class Rates(unittest.TestCase):
    def test_headers(self):
        self.assertEqual(rates.headers({"RATES_API_KEY": "k"}), {"Authorization": "Bearer k"})
