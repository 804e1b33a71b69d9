"""The three protocols on the wire: JSON that passes unchanged, and is corrected only where no client could read it."""

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from dgm.messages import JsonObject, WireProtocol, WireReply
from dgm.wires.chat import CHAT
from dgm.wires.events import ErrorInAnswer
from dgm.wires.messages import MESSAGES
from dgm.wires.responses import RESPONSES
from dgm.wires.wire import Wire

WIRES: Mapping[WireProtocol, Wire] = MappingProxyType(
    {wire.protocol: wire for wire in (CHAT, RESPONSES, MESSAGES)}
)
_LINE = re.compile(r"\r\n|\n|\r")


def whole_of(reply: WireReply, request: JsonObject) -> JsonObject:
    """Return the whole answer in recorded bytes, streamed or not.

    Unreadable bytes, a refusal's among them, become as much of an answer as they hold: of a stream that holds an error
    or is cut off, the part before.
    """
    reader = WIRES[reply.protocol].reader(request)
    text = reply.content.decode("utf-8", "replace")
    if not reply.stream or reply.error or text.lstrip().startswith("{"):
        return _parse_object(text)
    for name, data in _parse_events(text):
        event = _parse_object(data)
        if not event:
            continue
        try:
            reader.take(event, name)
        except ErrorInAnswer:
            break
    return reader.whole()


def _parse_events(text: str) -> Iterator[tuple[str, str]]:
    name, data = "", list[str]()
    for line in [*_LINE.split(text), ""]:
        if line.startswith("data:"):
            data.append(line[5:])
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif not line:
            if data:
                yield name, "\n".join(data)
            name, data = "", []


def _parse_object(text: str) -> JsonObject:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
