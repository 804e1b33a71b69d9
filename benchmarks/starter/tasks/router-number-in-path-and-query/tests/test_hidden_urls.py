import unittest

from router import BuildError, Table


class Urls(unittest.TestCase):
    def setUp(self):
        self.routes = Table()
        self.routes.add("GET", "/list", "list", name="list")
        self.routes.add("GET", "/users/{id:int}", "user", name="user")
        self.routes.add("GET", "/{year:int}/{month:int}/{title:slug}", "post", name="post")
        self.routes.add("GET", "/files/{name:path}", "file", name="file")

    def test_path_only(self):
        self.assertEqual(self.routes.url_for("user", id=7), "/users/7")

    def test_path_and_query(self):
        self.assertEqual(self.routes.url_for("user", id=7, tab="posts", page=2), "/users/7?page=2&tab=posts")

    def test_three_variables(self):
        url = self.routes.url_for("post", year=2024, month=5, title="on-rain", print=1)
        self.assertEqual(url, "/2024/5/on-rain?print=1")

    def test_parameter_called_name(self):
        self.assertEqual(self.routes.url_for("file", name="a/b", v=3), "/files/a/b?v=3")

    def test_query_only(self):
        self.assertEqual(self.routes.url_for("list", id=7, tag=["a", "b"]), "/list?id=7&tag=a&tag=b")

    def test_neither(self):
        self.assertEqual(self.routes.url_for("list"), "/list")

    def test_missing(self):
        with self.assertRaises(BuildError):
            self.routes.url_for("user", tab="posts")

    def test_mounted(self):
        outer = Table()
        outer.mount("/v1", self.routes, name="one")
        self.assertEqual(outer.url_for("one.user", id=3), "/v1/users/3")
