import copy
import unittest

from settings import Settings, merged, read_text

DEFAULTS = {"db": {"host": "localhost", "port": "5432"}, "web": {"port": "80"}}


class Sites(unittest.TestCase):
    def setUp(self):
        self.defaults = copy.deepcopy(DEFAULTS)

    def test_second_site(self):
        Settings(self.defaults, {"db": {"host": "one"}})
        self.assertEqual(Settings(self.defaults).text("db.host"), "localhost")

    def test_layers_stay(self):
        site, user = {"db": {"host": "one"}}, {"db": {"host": "two"}, "log": {"level": "info"}}
        Settings(self.defaults, site, user)
        self.assertEqual((self.defaults, site), (DEFAULTS, {"db": {"host": "one"}}))

    def test_middle_layer_stays(self):
        site = {"log": {"level": "info"}}
        Settings(self.defaults, site, {"log": {"level": "debug"}})
        self.assertEqual(site, {"log": {"level": "info"}})

    def test_override_stays_here(self):
        first = Settings(self.defaults)
        first.set("db.host", "other")
        self.assertEqual(Settings(self.defaults).text("db.host"), "localhost")
        self.assertEqual(self.defaults, DEFAULTS)

    def test_override_can_be_dropped(self):
        settings = Settings(self.defaults)
        settings.set("web.port", 81)
        settings.reset("web.port")
        self.assertEqual(settings.number("web.port"), 80)

    def test_override_of_two_keys(self):
        settings = Settings(self.defaults)
        settings.set("web.port", 81)
        settings.set("web.host", "w")
        settings.reset("web.port")
        self.assertEqual((settings.text("web.port"), settings.text("web.host")), ("80", "w"))

    def test_merged_returns_a_new_dict(self):
        base = {"a": {"x": "1"}}
        self.assertEqual(merged(base, {"b": {}, "a": {"y": "2"}}), {"a": {"x": "1", "y": "2"}, "b": {}})
        self.assertEqual(base, {"a": {"x": "1"}})

    def test_later_layer_wins(self):
        settings = Settings(self.defaults, read_text("[db]\nhost = one"), read_text("[db]\nhost = two"))
        self.assertEqual((settings.text("db.host"), settings.origin("db.host")), ("two", 2))
