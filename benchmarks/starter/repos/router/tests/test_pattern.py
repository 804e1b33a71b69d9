import unittest

from router import BuildError, Pattern, PatternError
from router.converters import CONVERTERS
from router.url import encode_query, join_paths, quote_path, split_path


class PatternTest(unittest.TestCase):
    def test_names(self):
        self.assertEqual(Pattern("/a/{b}/{c:int}").names, ["b", "c"])

    def test_build(self):
        self.assertEqual(Pattern("/users/{id:int}/edit").build({"id": 7}), "/users/7/edit")

    def test_build_quotes(self):
        self.assertEqual(Pattern("/tags/{tag}").build({"tag": "a/b"}), "/tags/a%2Fb")

    def test_build_needs_all(self):
        with self.assertRaises(BuildError):
            Pattern("/tags/{tag}").build({})

    def test_build_checks_the_type(self):
        with self.assertRaises(BuildError):
            Pattern("/users/{id:int}").build({"id": "seven"})

    def test_bad_patterns(self):
        for text in ("users", "/{a}/{a}", "/x{a}", "/{a:money}", "/{a:path}/b"):
            with self.subTest(text), self.assertRaises(PatternError):
                Pattern(text)


class PartsTest(unittest.TestCase):
    def test_int(self):
        self.assertEqual(CONVERTERS["int"].read("12"), 12)
        self.assertIsNone(CONVERTERS["int"].read("-1"))

    def test_slug(self):
        self.assertEqual(CONVERTERS["slug"].read("new-shoes"), "new-shoes")
        self.assertIsNone(CONVERTERS["slug"].read("New"))

    def test_split(self):
        self.assertEqual(split_path("/a%2Fb/c%20d?x=/"), ["a/b", "c d"])

    def test_join(self):
        self.assertEqual(join_paths("/shop/", "/cart"), "/shop/cart")

    def test_quote_path(self):
        self.assertEqual(quote_path("a b/c"), "a%20b/c")

    def test_query(self):
        self.assertEqual(encode_query({"b": [1, 2], "a": "x y"}), "?a=x%20y&b=1&b=2")
