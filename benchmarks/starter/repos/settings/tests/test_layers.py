import unittest

from settings import (
    BadValue,
    MissingKey,
    ReferenceLoop,
    Settings,
    as_duration,
    as_size,
    environment_layer,
    merged,
    read_text,
)

DEFAULTS = """\
[paths]
root = /srv
data = ${root}/data
[web]
port = 80
log = ${paths.data}/web.log
limit = 10k
pause = 1m30s
"""
LOCAL = """\
[web]
port = 8080
debug = yes
hosts = a, b,,
"""


class LayersTest(unittest.TestCase):
    def setUp(self):
        self.settings = Settings(read_text(DEFAULTS, "defaults"), read_text(LOCAL, "local"))

    def test_later_layer_wins(self):
        self.assertEqual(self.settings.number("web.port"), 8080)

    def test_earlier_layer_shows_through(self):
        self.assertEqual(self.settings.size("web.limit"), 10240)

    def test_references(self):
        self.assertEqual(self.settings.text("web.log"), "/srv/data/web.log")

    def test_reference_loop(self):
        with self.assertRaises(ReferenceLoop):
            Settings({"a": {"x": "${y}", "y": "${x}"}}).text("a.x")

    def test_missing(self):
        with self.assertRaises(MissingKey):
            self.settings.text("web.colour")

    def test_get_default(self):
        self.assertEqual(self.settings.get("web.colour", "red"), "red")

    def test_flag(self):
        self.assertTrue(self.settings.flag("web.debug"))
        self.assertFalse(self.settings.flag("web.quiet"))

    def test_items(self):
        self.assertEqual(self.settings.items("web.hosts"), ["a", "b"])

    def test_bad_value_names_the_setting(self):
        with self.assertRaisesRegex(BadValue, "web.log"):
            self.settings.number("web.log")

    def test_section(self):
        self.assertEqual(self.settings.section("paths"), {"root": "/srv", "data": "/srv/data"})

    def test_set_and_reset(self):
        self.settings.set("web.port", 1)
        self.assertEqual(self.settings.number("web.port"), 1)
        self.settings.reset("web.port")
        self.assertEqual(self.settings.number("web.port"), 8080)

    def test_origin(self):
        self.assertEqual([self.settings.origin("web.port"), self.settings.origin("paths.root")], [1, 0])

    def test_require(self):
        with self.assertRaisesRegex(MissingKey, "web.colour, web.font"):
            self.settings.require("web.colour", "web.port", "web.font")

    def test_differences(self):
        other = Settings({"web": {"port": "80"}})
        self.assertEqual(Settings({"web": {"port": "81"}}).differences(other), {"web.port": ("81", "80")})

    def test_environment(self):
        environ = {"APP_WEB__PORT": "99", "APP_DEBUG": "1", "HOME": "/", "APP_WEB__TLS__ON": "no"}
        self.assertEqual(environment_layer(environ, "APP_"), {"web": {"port": "99"}, "web.tls": {"on": "no"}})

    def test_merged(self):
        self.assertEqual(merged({"a": {"x": "1"}}, {"a": {"y": "2"}}), {"a": {"x": "1", "y": "2"}})


class ValuesTest(unittest.TestCase):
    def test_size(self):
        self.assertEqual([as_size("7"), as_size("2 MB")], [7, 2 * 1024**2])

    def test_duration(self):
        self.assertEqual([as_duration("90"), as_duration("1h 30m")], [90, 5400])
