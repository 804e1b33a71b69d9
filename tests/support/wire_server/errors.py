"""What each provider says when it does not answer: status, words, headers and the body around them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OPENAI = "openai"
ANTHROPIC = "anthropic"
TYPES = {
    OPENAI: {
        429: "requests",
        500: "server_error",
        502: "server_error",
        503: "server_error",
        529: "server_error",
    },
    ANTHROPIC: {
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        409: "conflict_error",
        413: "request_too_large",
        429: "rate_limit_error",
        500: "api_error",
        502: "api_error",
        503: "api_error",
        408: "timeout_error",
        504: "timeout_error",
        529: "overloaded_error",
    },
}


class BrainFault(Exception):
    """A test's brain said what this wire cannot carry: a mistake in the test."""


@dataclass(eq=False)
class Refused(Exception):
    """A request that gets an error for an answer."""

    status: int
    message: str
    code: str | None = None
    param: str | None = None
    type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    """Of Anthropic's errors: what its client may go by."""
    raw: bytes = b""
    """The whole body, where it is another vendor's."""

    def kind(self, vendor: str) -> str:
        """The provider's word for this sort of error."""
        return self.type or TYPES[vendor].get(self.status, "invalid_request_error")

    def body(self, vendor: str, request_id: str) -> bytes:
        """The error as this vendor writes it."""
        return self.raw or json.dumps(self.record(vendor, request_id)).encode()

    def record(self, vendor: str, request_id: str) -> Mapping[str, Any]:
        """The error as a JSON object."""
        kind = self.kind(vendor)
        if vendor == ANTHROPIC:
            details = {"details": self.details} if self.details else {}
            return {
                "type": "error",
                "error": {"type": kind, "message": self.message, **details},
                "request_id": request_id,
            }
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


def wrong_key(vendor: str, given: str) -> Refused:
    """A key that is none, or no key at all."""
    if vendor == ANTHROPIC:
        return Refused(401, "invalid x-api-key" if given else "x-api-key header is required")
    if not given:
        return Refused(401, "You didn't provide an API key.", type="invalid_request_error")
    shown = given[:8] + "*" * 8 + given[-4:] if len(given) > 12 else "*" * len(given)
    message = (
        f"Incorrect API key provided: {shown}. "
        "You can find your API key at https://platform.openai.com/account/api-keys."
    )
    return Refused(401, message, "invalid_api_key", type="invalid_request_error")


def unknown_model(vendor: str, name: str) -> Refused:
    """A model that this server was not told of."""
    if vendor == ANTHROPIC:
        return Refused(404, f"model: {name}")
    message = f"The model `{name}` does not exist or you do not have access to it."
    return Refused(404, message, "model_not_found", type="invalid_request_error")


def too_long(path: str, tokens: int, limit: int) -> Refused:
    """More than the model's context holds, in the words of each endpoint."""
    if path.endswith("/messages"):
        return Refused(400, f"prompt is too long: {tokens} tokens > {limit} maximum")
    if path.endswith("/responses"):
        message = (
            "Your input exceeds the context window of this model. Please adjust your input and try again."
        )
        return Refused(400, message, "context_length_exceeded", "input")
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in "
        f"{tokens} tokens. Please reduce the length of the messages."
    )
    return Refused(400, message, "context_length_exceeded", "messages")


def rate_limited(vendor: str, headers: Mapping[str, str]) -> Refused:
    """Too many requests."""
    if vendor == ANTHROPIC:
        message = "This request would exceed your organization's rate limit. Please try again later."
        return Refused(429, message, headers=headers)
    message = "Rate limit reached for requests. Please try again later."
    return Refused(429, message, "rate_limit_exceeded", headers=headers)


def no_credit(vendor: str) -> Refused:
    """Nobody pays any more."""
    if vendor == ANTHROPIC:
        message = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
        return Refused(400, message, type="invalid_request_error")
    message = "You exceeded your current quota, please check your plan and billing details."
    return Refused(429, message, "insufficient_quota", type="insufficient_quota")


def forbidden(vendor: str) -> Refused:
    """A key without the right."""
    if vendor == ANTHROPIC:
        return Refused(403, "Your API key does not have permission to use the specified resource.")
    message = "Project does not have access to this model."
    return Refused(403, message, "model_not_found", type="invalid_request_error")


def failing(vendor: str, status: int) -> Refused:
    """The provider's own trouble."""
    words = {
        408: "Request timed out.",
        409: "The request conflicts with another one.",
        500: "Internal server error",
        502: "Bad gateway.",
        503: "The server is overloaded or not ready yet.",
        504: "Gateway timeout.",
        529: "Overloaded",
    }
    return Refused(status, words[status])


def unreasoned(vendor: str) -> Refused:
    """A turn that called tools came back without the reasoning that led to the calls."""
    if vendor == ANTHROPIC:
        message = (
            "messages: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, "
            "a final `assistant` message must start with a thinking block (preceding the lastmost set of "
            "`tool_use` and `tool_result` blocks)."
        )
        return Refused(400, message)
    message = "Item of type 'function_call' was provided without its required 'reasoning' item."
    return Refused(400, message, param="input")
