import unittest

import rates


class Keys(unittest.TestCase):
    def test_no_key(self):
        with self.assertRaises(rates.MissingKey) as caught:
            rates.headers({})
        self.assertIn("RATES_API_KEY", str(caught.exception))

    def test_empty_key(self):
        with self.assertRaises(rates.MissingKey):
            rates.headers({"RATES_API_KEY": ""})

    def test_key(self):
        self.assertEqual(rates.headers({"RATES_API_KEY": "abc"})["Authorization"], "Bearer abc")
