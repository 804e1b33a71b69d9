"""Parse the recorded bytes of an answer."""

import json
import re
from collections.abc import Iterator

from dgm.messages import JsonObject, WireReply
from dgm.wires.events import ErrorInAnswer
from dgm.wires.wire import StreamReader

_LINE = re.compile(r"\r\n|\n|\r")


def parse_answer(reply: WireReply, reader: StreamReader) -> JsonObject:
    """Return the answer as JSON; for a stream that holds an error or is cut off, the part before."""
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
