import unittest

from gauge import Gauge


class Measuring(unittest.TestCase):
    def test_room(self):
        gauge = Gauge(5)
        gauge.fill(2)
        self.assertEqual(gauge.room(), 3)

    def test_brim(self):
        gauge = Gauge(5)
        gauge.fill(5)
        self.assertTrue(gauge.is_full())
