import unittest

from settings import BadValue, MissingKey, ReferenceLoop, Settings


class Default(unittest.TestCase):
    def setUp(self):
        self.settings = Settings({"a": {"x": "1", "loop": "${loop}", "dangling": "${b.y}"}})

    def test_missing_key(self):
        self.assertEqual(self.settings.get("a.y", "none"), "none")

    def test_missing_section(self):
        self.assertIsNone(self.settings.get("b.x"))

    def test_missing_reference(self):
        self.assertEqual(self.settings.get("a.dangling", 7), 7)

    def test_name_without_section(self):
        self.assertEqual(self.settings.get("x", 3), 3)

    def test_present(self):
        self.assertEqual(self.settings.get("a.x", "none"), "1")

    def test_loop_is_still_an_error(self):
        with self.assertRaises(ReferenceLoop):
            self.settings.get("a.loop", "none")

    def test_text_is_still_an_error(self):
        with self.assertRaises(MissingKey):
            self.settings.text("a.y")

    def test_bad_value_is_still_an_error(self):
        with self.assertRaises(BadValue):
            Settings({"a": {"x": "one"}}).number("a.x")
