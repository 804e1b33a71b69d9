import unittest

from router import BuildError, MethodNotAllowed, NotFound, PatternError, Redirect, Table


def site():
    routes = Table()
    routes.add("GET", "/", "home", name="home")
    routes.add("GET POST", "/users", "users", name="users")
    routes.add("GET", "/users/{id:int}", "user by number", name="user")
    routes.add("GET", "/users/{nick}", "user by nick")
    routes.add("GET", "/users/me", "myself")
    routes.add("PUT", "/users/{id:int}", "save user")
    routes.add("GET", "/shop/", "shop", name="shop")
    routes.add("GET", "/files/{name:path}", "file", name="file")
    return routes


class MatchTest(unittest.TestCase):
    def setUp(self):
        self.routes = site()

    def handler(self, path, method="GET"):
        return self.routes.match(method, path).handler

    def test_root(self):
        self.assertEqual(self.handler("/"), "home")

    def test_fixed_before_variable(self):
        self.assertEqual(self.handler("/users/me"), "myself")

    def test_number_before_word(self):
        self.assertEqual(self.handler("/users/12"), "user by number")
        self.assertEqual(self.handler("/users/12a"), "user by nick")

    def test_params(self):
        self.assertEqual(self.routes.match("GET", "/users/12").params, {"id": 12})

    def test_params_are_unquoted(self):
        self.assertEqual(self.routes.match("GET", "/users/a%20b").params, {"nick": "a b"})

    def test_rest(self):
        self.assertEqual(self.routes.match("GET", "/files/a/b.txt").params, {"name": "a/b.txt"})

    def test_other_method(self):
        self.assertEqual(self.handler("/users/12", "PUT"), "save user")

    def test_head(self):
        self.assertEqual(self.handler("/users", "HEAD"), "users")

    def test_not_found(self):
        with self.assertRaises(NotFound):
            self.handler("/moon")

    def test_not_allowed(self):
        with self.assertRaises(MethodNotAllowed) as caught:
            self.handler("/users", "DELETE")
        self.assertEqual(caught.exception.allowed, ["GET", "HEAD", "POST"])

    def test_allowed(self):
        self.assertEqual(self.routes.allowed("/users/12"), ["GET", "HEAD", "PUT"])

    def test_way_back(self):
        self.routes.add("GET", "/{page}/edit", "edit")
        self.assertEqual(self.handler("/users/edit"), "user by nick")
        self.assertEqual(self.handler("/shop/edit"), "edit")


class RedirectTest(unittest.TestCase):
    def test_slash_is_added(self):
        self.assertEqual(site().resolve("GET", "/shop?page=2"), Redirect("/shop/?page=2"))

    def test_slash_is_taken_away(self):
        self.assertEqual(site().resolve("GET", "/users/"), Redirect("/users"))

    def test_not_found(self):
        with self.assertRaises(NotFound):
            site().resolve("GET", "/moon/")


class BuildTest(unittest.TestCase):
    def test_url(self):
        self.assertEqual(site().url_for("user", id=7), "/users/7")

    def test_query(self):
        self.assertEqual(site().url_for("users", page=2), "/users?page=2")

    def test_path_and_query(self):
        self.assertEqual(site().url_for("user", id=7, tab="posts"), "/users/7?tab=posts")

    def test_rest(self):
        self.assertEqual(site().url_for("file", name="a b/c.txt"), "/files/a%20b/c.txt")

    def test_unknown(self):
        with self.assertRaises(BuildError):
            site().url_for("moon")


class TableTest(unittest.TestCase):
    def test_same_route_twice(self):
        with self.assertRaises(PatternError):
            site().add("GET", "/users", "again")

    def test_same_name_twice(self):
        with self.assertRaises(PatternError):
            site().add("GET", "/people", "again", name="users")

    def test_mount(self):
        routes = Table()
        routes.mount("/v1/", site(), name="one")
        self.assertEqual(routes.match("PUT", "/v1/users/3").params, {"id": 3})
        self.assertEqual(routes.url_for("one.user", id=3), "/v1/users/3")

    def test_decorator(self):
        routes = Table()

        @routes.route("GET", "/about")
        def about():
            return "about"

        self.assertIs(routes.match("GET", "/about").handler, about)

    def test_describe(self):
        self.assertEqual(site().describe()[-2:], ["GET,PUT      /users/{id:int} user", "GET          /users/{nick}"])
