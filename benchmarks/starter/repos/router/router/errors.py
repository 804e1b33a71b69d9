"""What can go wrong between a URL and a route."""


class RoutingError(Exception):
    """The base of all errors of this package."""


class PatternError(RoutingError, ValueError):
    """A pattern is not well formed, or two routes are the same."""


class NotFound(RoutingError, LookupError):
    """No route fits the path."""


class MethodNotAllowed(RoutingError):
    """Routes fit the path, but none of them the method."""

    def __init__(self, method, path, allowed):
        super().__init__(f"{method} {path}: only {', '.join(allowed)}")
        self.method = method
        self.allowed = allowed


class BuildError(RoutingError, LookupError):
    """No URL can be made from a name and these parameters."""
