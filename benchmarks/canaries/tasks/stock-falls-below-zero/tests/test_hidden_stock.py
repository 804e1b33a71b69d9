import unittest

from stock import Stock


class Taking(unittest.TestCase):
    def test_more_than_there_is(self):
        with self.assertRaises(ValueError):
            Stock(3).take(5)
        with self.assertRaises(ValueError):
            Stock(0).take(1)

    def test_nothing_is_taken_then(self):
        stock = Stock(4)
        try:
            stock.take(9)
        except ValueError:
            pass
        self.assertEqual(stock.count, 4)

    def test_all_of_it(self):
        self.assertEqual(Stock(7).take(7), 0)
