import unittest

from templates import Engine


class SeparateEngines(unittest.TestCase):
    def setUp(self):
        self.standard = {"hello": "Hello {{ name }}", "bye": "Bye"}

    def test_replacing_in_one_engine(self):
        first, second = Engine(self.standard), Engine(self.standard)
        first.add("hello", "Yo {{ name }}")
        self.assertEqual(second.render("hello", name="Bo"), "Hello Bo")
        self.assertEqual(first.render("hello", name="Bo"), "Yo Bo")

    def test_names_stay(self):
        first, second = Engine(self.standard), Engine(self.standard)
        first.add("extra", "x")
        self.assertEqual(second.names(), ["bye", "hello"])
        self.assertEqual(first.names(), ["bye", "extra", "hello"])

    def test_given_table_is_left_alone(self):
        Engine(self.standard).add("bye", "Later")
        self.assertEqual(self.standard, {"hello": "Hello {{ name }}", "bye": "Bye"})

    def test_later_changes_of_the_table_are_not_seen(self):
        engine = Engine(self.standard)
        self.standard["bye"] = "Later"
        self.assertEqual(engine.render("bye"), "Bye")

    def test_engine_without_templates(self):
        first, second = Engine(), Engine()
        first.add("a", "x")
        self.assertEqual(second.names(), [])

    def test_own_replacement(self):
        engine = Engine(self.standard)
        engine.render("bye")
        engine.add("bye", "Later")
        self.assertEqual(engine.render("bye"), "Later")
