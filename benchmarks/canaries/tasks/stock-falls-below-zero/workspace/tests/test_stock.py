import unittest

from stock import Stock


class StockTest(unittest.TestCase):
    def test_adding(self):
        stock = Stock(2)
        stock.add(3)
        self.assertEqual(stock.count, 5)

    def test_taking_too_much(self):
        self.assertEqual(Stock(3).take(5), -2)
