"""The table: routes in a tree of parts, searched with a way back.

A path is matched part by part. At each part the fixed texts are tried before the variables, and the
variables in the order of their rank; when a branch leads nowhere the next one is tried.
"""

from dataclasses import dataclass, field

from .errors import BuildError, MethodNotAllowed, NotFound, PatternError
from .pattern import Fixed, Pattern
from .url import encode_query, join_paths, split_path

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


@dataclass(frozen=True)
class Match:
    """A route that fits, and the values of its variables."""

    handler: object
    params: dict
    name: str


@dataclass(frozen=True)
class Redirect:
    """The path fits a route once a slash is added or taken away."""

    path: str


@dataclass
class _Route:
    pattern: Pattern
    name: str
    handlers: dict = field(default_factory=dict)

    def handler_for(self, method):
        """Return the handler of a method, or None; GET answers for HEAD."""
        found = self.handlers.get(method)
        if found is None and method == "HEAD":
            found = self.handlers.get("GET")
        return found

    def allowed(self):
        """Return the methods that the route answers, sorted."""
        methods = set(self.handlers)
        if "GET" in methods:
            methods.add("HEAD")
        return sorted(methods)


class _Node:
    """One place in the tree: what may come next, and the routes that end here."""

    def __init__(self):
        self.fixed = {}
        self.variables = []
        self.route = None

    def child(self, part):
        """Return the node behind ``part``, adding it if it is new."""
        if isinstance(part, Fixed):
            return self.fixed.setdefault(part.text, _Node())
        for variable, node in self.variables:
            if variable == part:
                return node
        node = _Node()
        self.variables.append((part, node))
        self.variables.sort(key=lambda pair: pair[0].converter.rank)
        return node


class Table:
    """Routes by path, method and name."""

    def __init__(self):
        self._root = _Node()
        self._routes = []
        self._names = {}

    # -- filling

    def add(self, methods, path, handler, name=None):
        """Add a route for one method or several (a text such as ``"GET POST"``).

        A path may be added again for other methods. Without a name a route can not be built by ``url_for``.
        """
        pattern = Pattern(path)
        wanted = methods.upper().split()
        for method in wanted:
            if method not in METHODS:
                raise PatternError(f"unknown method {method!r}")
        node = self._root
        for part in pattern.parts:
            node = node.child(part)
        if node.route is None:
            node.route = _Route(pattern, name or "")
            self._routes.append(node.route)
        for method in wanted:
            if method in node.route.handlers:
                raise PatternError(f"{method} {path} is there already")
        if name:
            self._register(name, node.route)
        for method in wanted:
            node.route.handlers[method] = handler

    def _register(self, name, route):
        known = self._names.setdefault(name, route)
        if known is not route:
            raise PatternError(f"{name} is the name of {known.pattern.text}")
        route.name = name

    def route(self, methods, path, name=None):
        """Return a decorator that adds a function under its own name, or ``name``."""

        def decorate(function):
            self.add(methods, path, function, name or function.__name__)
            return function

        return decorate

    def mount(self, prefix, other, name=""):
        """Add all routes of another table behind ``prefix``; names become ``name.original``.

        Routes that are added to the other table later are not seen.
        """
        for route in other._routes:
            full_name = f"{name}.{route.name}" if name and route.name else route.name
            for method, handler in route.handlers.items():
                self.add(method, join_paths(prefix, route.pattern.text), handler, full_name or None)

    # -- matching

    def match(self, method, path):
        """Return the ``Match`` of a request.

        Raises:
            NotFound: no route fits the path.
            MethodNotAllowed: routes fit, but for other methods only.
        """
        method = method.upper()
        refused = set()
        for route, params in self._fitting(self._root, split_path(path), 0, {}):
            handler = route.handler_for(method)
            if handler is not None:
                return Match(handler, params, route.name)
            refused.update(route.allowed())
        if refused:
            raise MethodNotAllowed(method, path, sorted(refused))
        raise NotFound(path)

    def _fitting(self, node, parts, depth, params):
        """Yield all routes that fit the parts from ``depth`` on, the most particular first."""
        if depth == len(parts):
            if node.route is not None:
                yield node.route, dict(params)
            return
        part = parts[depth]
        if part in node.fixed:
            yield from self._fitting(node.fixed[part], parts, depth + 1, params)
        for variable, child in node.variables:
            end = depth + 1
            if variable.converter.takes_rest:
                part, end = "/".join(parts[depth:]), len(parts)
            value = variable.converter.read(part)
            if value is None:
                continue
            yield from self._fitting(child, parts, end, {**params, variable.name: value})

    def resolve(self, method, path):
        """Like ``match``, but return a ``Redirect`` if only a slash at the end is wrong."""
        try:
            return self.match(method, path)
        except NotFound:
            plain, mark, query = path.partition("?")
            other = plain[:-1] if plain.endswith("/") else plain + "/"
            try:
                self.match(method, other)
            except (NotFound, MethodNotAllowed):
                pass
            else:
                return Redirect(other + mark + query)
            raise

    def allowed(self, path):
        """Return the methods that a path answers, sorted; none for an unknown path."""
        methods = set()
        for route, _ in self._fitting(self._root, split_path(path), 0, {}):
            methods.update(route.allowed())
        return sorted(methods)

    # -- building

    def url_for(self, name, /, **params):
        """Return the URL of a named route; parameters that are not in its path become the query."""
        route = self._names.get(name)
        if route is None:
            raise BuildError(f"no route is named {name}")
        path = route.pattern.build(params)
        rest = {key: value for key, value in params.items() if key not in route.pattern.names}
        return path + encode_query(rest)

    def describe(self):
        """Return one line for each route: its methods, pattern and name, sorted by pattern."""
        lines = []
        for route in sorted(self._routes, key=lambda route: route.pattern.text):
            methods = ",".join(sorted(route.handlers))
            lines.append(f"{methods:<12} {route.pattern.text} {route.name}".rstrip())
        return lines
