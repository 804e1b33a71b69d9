"""Conversion of Amazon's event stream, in which Bedrock streams Anthropic's models, to the events of Messages."""

import base64
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx2

_CONTENT_TYPE = "application/vnd.amazon.eventstream"
_DROPPED = frozenset({"content-type", "content-length", "content-encoding", "transfer-encoding"})
_ERRORS = {
    "throttlingexception": "rate_limit_error",
    "serviceunavailableexception": "overloaded_error",
    "modelnotreadyexception": "overloaded_error",
    "modeltimeoutexception": "timeout_error",
    "validationexception": "invalid_request_error",
    "accessdeniedexception": "permission_error",
    "resourcenotfoundexception": "not_found_error",
}
"""Map of Amazon's error names to Anthropic's; any other is an ``api_error``."""


def as_server_sent_events(response: "httpx2.Response") -> "httpx2.Response":
    """Return an unread reply in Amazon's framing as server-sent events; return any other reply unchanged."""
    import httpx2

    kind = str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()
    if kind != _CONTENT_TYPE:
        return response

    class ServerSentEvents(httpx2.AsyncByteStream):
        """The events of the reply, record by record."""

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for record in _iter_records(response):
                yield record

        async def aclose(self) -> None:
            await response.aclose()

    kept = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _DROPPED]
    return httpx2.Response(
        response.status_code,
        headers=[*kept, ("content-type", "text/event-stream; charset=utf-8")],
        stream=ServerSentEvents(),
        request=response.request,
    )


async def _iter_records(response: "httpx2.Response") -> AsyncIterator[bytes]:
    import httpx2
    from botocore.eventstream import EventStreamBuffer, ParserError

    buffer = EventStreamBuffer()
    try:
        async for chunk in response.aiter_bytes():
            buffer.add_data(chunk)
            for frame in buffer:
                yield _encode_record(frame.headers, frame.payload)
    except ParserError as error:
        raise httpx2.RemoteProtocolError(f"the event stream of Bedrock is broken: {error}") from error


def _encode_record(headers: dict[str, Any], payload: bytes) -> bytes:
    """Return one frame as a record; empty bytes for a frame that holds no event of Messages."""
    try:
        content = json.loads(payload)
    except (ValueError, RecursionError):
        content = {}
    if headers.get(":message-type") != "event":
        return _encode_error_record(headers, content)
    try:
        event = base64.b64decode(content["bytes"])
        name = json.loads(event)["type"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return b""
    return f"event: {name}\ndata: ".encode() + event.replace(b"\n", b" ") + b"\n\n"


def _encode_error_record(headers: dict[str, Any], content: Any) -> bytes:  # noqa: ANN401  (any JSON)
    code = str(headers.get(":exception-type") or headers.get(":error-code") or "error")
    said = content.get("message") or content.get("Message") if isinstance(content, dict) else None
    error = {
        "type": _ERRORS.get(code.lower(), "api_error"),
        "message": f"{code}: {said or headers.get(':error-message') or 'no message'}",
    }
    return f"event: error\ndata: {json.dumps({'type': 'error', 'error': error})}\n\n".encode()
