import unittest

from templates import Engine


class Names(unittest.TestCase):
    def test_given(self):
        self.assertEqual(Engine({"c": "", "a": "", "b": ""}).names(), ["a", "b", "c"])

    def test_added_later(self):
        engine = Engine({"b": "", "d": ""})
        engine.add("c", "")
        engine.add("a", "")
        self.assertEqual(engine.names(), ["a", "b", "c", "d"])

    def test_replaced(self):
        engine = Engine({"b": "1", "a": "2"})
        engine.add("b", "3")
        self.assertEqual(engine.names(), ["a", "b"])

    def test_falling(self):
        engine = Engine()
        for name in ("z", "y", "x.txt", "x"):
            engine.add(name, "")
        self.assertEqual(engine.names(), ["x", "x.txt", "y", "z"])

    def test_own_list(self):
        engine = Engine({"a": "", "b": ""})
        engine.names().clear()
        self.assertEqual(engine.names(), ["a", "b"])

    def test_none(self):
        self.assertEqual(Engine().names(), [])
