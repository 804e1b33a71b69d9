"""Events that a wire sends itself, and its errors for unusable answers of a provider."""

import json
from dataclasses import dataclass

from dgm.messages import JsonObject

DONE = "[DONE]"
"""Data of the event that ends a stream of Chat Completions."""


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event that replaces an original event, or accompanies it."""

    data: JsonObject | str
    """A JSON object, or ``DONE``."""
    name: str = ""
    """The ``event:`` line; empty: none."""

    def render(self) -> bytes:
        """Return the event's bytes, blank line included; ASCII only, so that no reader splits a line wrongly."""
        data = self.data if isinstance(self.data, str) else json.dumps(self.data, separators=(",", ":"))
        name = f"event: {self.name}\n" if self.name else ""
        return f"{name}data: {data}\n\n".encode("utf-8", "backslashreplace")


class UnusableReply(Exception):
    """The error for an unusable answer: not JSON, cut off, or without a choice. The next try may succeed.

    Attributes:
        reply_whole: the answer to accept if the next try ends alike; None if nothing can be used.
    """

    def __init__(self, message: str, reply_whole: JsonObject | None = None) -> None:
        super().__init__(message)
        self.reply_whole = reply_whole


class ErrorInAnswer(Exception):
    """The error of a provider in a successful answer or in an event of a stream.

    Attributes:
        body: the error's JSON as it arrived, with the error itself under ``error`` if the provider nests it.
        status: the HTTP status that the error names; None if it names none.
    """

    def __init__(self, body: JsonObject, status: int | None = None) -> None:
        super().__init__(_message(body))
        self.body = body
        self.status = status


def status_of(error: object) -> int | None:
    """Return the HTTP status that an error's ``code`` or ``status`` names, or None."""
    if not isinstance(error, dict):
        return None
    for name in ("status", "status_code", "code"):
        value = error.get(name)
        if isinstance(value, str) and value.isdecimal() and len(value) == 3:
            value = int(value)
        if isinstance(value, int) and 400 <= value <= 599:
            return value
    return None


def _message(body: JsonObject) -> str:
    error = body.get("error", body)
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or "the provider answered with an error")
