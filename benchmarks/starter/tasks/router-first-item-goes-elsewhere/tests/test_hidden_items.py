import unittest

from router import NotFound, Redirect, Table


class Items(unittest.TestCase):
    def setUp(self):
        self.routes = Table()
        self.routes.add("GET", "/items/{number:int}", "item", name="item")
        self.routes.add("GET", "/items/{word}", "word")
        self.routes.add("GET", "/shelf/{row:int}/{place:int}", "place", name="place")
        self.routes.add("GET", "/disk/{rest:path}", "file")

    def find(self, path):
        match = self.routes.match("GET", path)
        return match.handler, match.params

    def test_zero(self):
        self.assertEqual(self.find("/items/0"), ("item", {"number": 0}))

    def test_zero_without_other_routes(self):
        self.assertEqual(self.find("/shelf/0/0"), ("place", {"row": 0, "place": 0}))

    def test_zero_then_one(self):
        self.assertEqual(self.find("/shelf/0/1"), ("place", {"row": 0, "place": 1}))

    def test_zeros(self):
        self.assertEqual(self.find("/items/000"), ("item", {"number": 0}))

    def test_redirect(self):
        self.assertEqual(self.routes.resolve("GET", "/items/0/"), Redirect("/items/0"))

    def test_one(self):
        self.assertEqual(self.find("/items/1"), ("item", {"number": 1}))

    def test_word(self):
        self.assertEqual(self.find("/items/zero"), ("word", {"word": "zero"}))

    def test_nothing(self):
        for path in ("/items/", "/shelf//1", "/disk/"):
            with self.subTest(path), self.assertRaises(NotFound):
                self.routes.match("GET", path)

    def test_link(self):
        self.assertEqual(self.routes.url_for("item", number=0), "/items/0")
