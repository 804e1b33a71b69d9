import unittest

from router import BuildError, Table


class Folders(unittest.TestCase):
    def setUp(self):
        self.routes = Table()
        self.routes.add("GET", "/files/{name:path}", "file", name="file")
        self.routes.add("GET", "/tags/{tag}", "tag", name="tag")
        self.routes.add("GET", "/a%b/{rest:path}", "odd", name="odd")

    def test_folder(self):
        self.assertEqual(self.routes.url_for("file", name="a/b.txt"), "/files/a/b.txt")

    def test_deep_folder(self):
        self.assertEqual(self.routes.url_for("file", name="/a/b c/d?e/"), "/files/a/b%20c/d%3Fe")

    def test_there_and_back(self):
        for name in ("x", "a/b", "50%/ä/ö"):
            with self.subTest(name):
                url = self.routes.url_for("file", name=name)
                self.assertEqual(url.count("/"), 2 + name.count("/"))
                self.assertEqual(self.routes.match("GET", url).params, {"name": name})

    def test_mounted(self):
        outer = Table()
        outer.mount("/v1", self.routes, name="one")
        self.assertEqual(outer.url_for("one.file", name="a/b"), "/v1/files/a/b")

    def test_fixed_part(self):
        self.assertEqual(self.routes.url_for("odd", rest="x"), "/a%25b/x")

    def test_other_kinds(self):
        self.assertEqual(self.routes.url_for("tag", tag="a/b"), "/tags/a%2Fb")

    def test_query(self):
        self.assertEqual(self.routes.url_for("tag", tag="x", back="/a/b"), "/tags/x?back=%2Fa%2Fb")

    def test_empty(self):
        with self.assertRaises(BuildError):
            self.routes.url_for("file", name="/")
