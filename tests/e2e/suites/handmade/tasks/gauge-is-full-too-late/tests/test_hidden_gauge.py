import unittest

from gauge import Gauge


class Filling(unittest.TestCase):
    def test_last_drop(self):
        gauge = Gauge(3)
        gauge.fill(2)
        gauge.fill(1)
        self.assertTrue(gauge.is_full())

    def test_empty_gauge(self):
        self.assertTrue(Gauge(0).is_full())

    def test_half(self):
        gauge = Gauge(4)
        gauge.fill(2)
        self.assertFalse(gauge.is_full())
