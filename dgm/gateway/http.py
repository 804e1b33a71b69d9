"""Parsing of HTTP requests to the gateway, and the answers that do not come from a model."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dgm.wires import CHAT, MESSAGES, RESPONSES
from dgm.wires.wire import Wire

if TYPE_CHECKING:
    from starlette.requests import Request as HttpRequest
    from starlette.responses import Response

JSON = "application/json"
EVENTS = "text/event-stream"
KEY_HEADERS = ("x-api-key", "api-key", "x-goog-api-key")
"""Headers with the key of Anthropic's, Azure's and Google's clients."""


def wire_of(http: "HttpRequest") -> Wire:
    """Return the protocol of a client, for paths that do not determine it."""
    return MESSAGES if "anthropic-version" in http.headers else CHAT


def token_of(http: "HttpRequest") -> str:
    """Return the key that a client sends, in any provider's header; empty if it sends none."""
    scheme, _, token = http.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return token.strip()
    return next((http.headers[name] for name in KEY_HEADERS if http.headers.get(name)), "")


def places_of(wire: Wire) -> Sequence[str]:
    """Return the paths at which clients of a protocol ask: the provider's own, and those of OpenAI's on Azure.

    What the path calls a deployment is not looked at: the model is the one in the body.
    """
    own = "/v1" + wire.path
    if wire is CHAT:
        return own, "/openai" + own, "/openai/deployments/{deployment}" + wire.path
    return (own, "/openai" + own, "/openai" + wire.path) if wire is RESPONSES else (own,)


def refusal_response(wire: Wire, status: int, code: str, message: str) -> "Response":
    """Return an error response in the words of the protocol."""
    from starlette.responses import Response

    # Vendors' clients retry after a 503 unless they are told not to.
    headers = {"x-should-retry": "false"}
    return Response(wire.render_error(status, code, message), status, headers, JSON)


def invalid_key_response(wire: Wire) -> "Response":
    """Return the response to a client without a valid key."""
    return refusal_response(
        wire, 401, "invalid_api_key", "no such key: it was never given out, or its job has ended"
    )
