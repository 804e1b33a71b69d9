"""Requests to the service that knows exchange rates."""

VARIABLE = "RATES_API_KEY"


class MissingKey(LookupError):
    """There is no key to ask the service with."""


def headers(environment):
    """Return the headers of a request."""
    return {"Authorization": f"Bearer {environment.get(VARIABLE, '')}"}
