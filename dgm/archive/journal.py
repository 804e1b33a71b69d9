"""The recorded model calls of a run: their requests and replies in the table ``calls`` of its log.

Each row belongs to the events of one call, and is written in their transaction.

A conversation grows by a few turns per call but is sent whole each time. So a stored request names an earlier one, how
many of its turns it repeats, and which other keys are unchanged. Exchanges with a provider are kept as the JSON that
was sent and received (``wire`` names its protocol); those of other models (offline, plug-ins) in dgm's own form.
"""

import json
import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import astuple, dataclass, replace
from typing import Any, Literal

from dgm.archive.events import CallBooked, CallStarted, ModelCalled
from dgm.archive.log import Log
from dgm.bounded_reading import parse_json
from dgm.domain import Usage
from dgm.errors import ArchiveCorrupt
from dgm.messages import (
    Message,
    Native,
    Reply,
    Request,
    Role,
    Stop,
    Tool,
    ToolCall,
    WireProtocol,
    WireReply,
    WireRequest,
)
from dgm.wires import WIRES, whole_of

AnyRequest = Request | WireRequest
AnyReply = Reply | WireReply
Record = dict[str, Any]
"""The JSON of a request or a reply."""
TURNS = {WireProtocol.CHAT: "messages", WireProtocol.RESPONSES: "input", WireProtocol.MESSAGES: "messages"}
"""Protocol → the key of the turns of a conversation."""
_OPTIONS = {"top_p": None, "stop": (), "tool_choice": "auto", "parallel": True, "effort": ""}
"""Options of a request in dgm's own form that are left out at their defaults."""
dump = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


def request_record(request: AnyRequest) -> Record:
    """Return the whole JSON of a request."""
    if isinstance(request, WireRequest):
        headers = {"headers": dict(request.headers)} if request.headers else {}
        return {"wire": request.protocol.value, "body": dict(request.body), **headers}
    options = {name: getattr(request, name) for name in _OPTIONS}
    body = {
        "model": request.model,
        "temperature": request.temperature,
        "max_output_tokens": request.max_output_tokens,
        "messages": [_message_body(message) for message in request.messages],
        "tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ],
        **{name: value for name, value in options.items() if value != _OPTIONS[name]},
    }
    return {"body": body}


def read_request(record: Record) -> AnyRequest:
    """Return the request in its whole JSON.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: the JSON is not a request.
    """
    body = record["body"]
    if "wire" in record:
        return WireRequest(WireProtocol(record["wire"]), dict(body), record.get("headers", {}))
    options = {name: body.get(name, default) for name, default in _OPTIONS.items()}
    return Request(
        tuple(map(_read_message, body["messages"])),
        tuple(Tool(tool["name"], tool["description"], tool["parameters"]) for tool in body["tools"]),
        body["model"],
        body["temperature"],
        body["max_output_tokens"],
        **{**options, "stop": tuple(options["stop"])},
    )


def shorten(record: Record, base: Record, name: int) -> Record:
    """Return a request without what it shares with an earlier one of the same protocol, ``name``."""
    if record.get("wire") != base.get("wire"):
        return record
    body, before, turns = record["body"], base["body"], _turns_of(record)
    kept = _count_common(body.get(turns), before.get(turns))
    same = sorted(
        key for key in body if key != turns and key in before and _is_same_json(before[key], body[key])
    )
    rest = {key: value for key, value in body.items() if key not in same}
    if kept:
        rest[turns] = rest[turns][kept:]
    return {**record, "body": rest, "base": name, "kept": kept, "same": same}


def complete(record: Record, base: Record) -> Record:
    """Return a whole request, given the one that it builds on; raises like ``read_request``."""
    body, before, turns = dict(record["body"]), base["body"], _turns_of(record)
    body |= {key: before[key] for key in record["same"]}
    if record["kept"]:
        body[turns] = [*before[turns][: record["kept"]], *body[turns]]
    return {**record, "body": body}


def encode_reply(reply: AnyReply) -> bytes:
    """Return the JSON of a reply; the bytes of a provider's are kept unchanged."""
    record: Record = {"usage": astuple(reply.usage), "stop": reply.stop.value}
    if isinstance(reply, WireReply):
        record["wire"] = reply.protocol.value
        record["content"] = reply.content.decode("utf-8", "surrogateescape")
        record["stream"] = reply.stream
        if reply.error:
            record |= {"error": reply.error, "status": reply.status, "own": reply.own}
        return dump(record).encode()
    record |= {"text": reply.text, "calls": list(map(astuple, reply.calls))}
    native = astuple(reply.native) if reply.native else None
    more = {"reasoning": reply.reasoning, "native": native, "error": reply.error}
    return dump(record | {key: value for key, value in more.items() if value}).encode()


def decode_reply(data: bytes) -> AnyReply:
    """Return the reply that ``encode_reply`` encoded; raises like ``read_request``."""
    record = parse_json(data)
    usage, stop, error = Usage(*record["usage"]), Stop(record["stop"]), record.get("error", "")
    if "wire" in record:
        content = record["content"].encode("utf-8", "surrogateescape")
        end = (error, record.get("status", 200), record.get("own", True))
        return WireReply(WireProtocol(record["wire"]), content, record["stream"], usage, stop, *end)
    calls, native = _read_calls(record["calls"]), _read_native(record)
    return Reply(record["text"], calls, stop, usage, record.get("reasoning", ""), native, error)


def _turns_of(record: Record) -> str:
    return TURNS[WireProtocol(record["wire"])] if "wire" in record else "messages"


def _message_body(message: Message) -> Record:
    body: Record = {"role": message.role.value, "text": message.text}
    if message.calls:
        body["calls"] = [[call.id, call.name, call.arguments] for call in message.calls]
    if message.call_id:
        body["call_id"] = message.call_id
    if message.failed:
        body["failed"] = True
    if message.native:
        body["native"] = astuple(message.native)
    return body


def _read_message(body: Record) -> Message:
    return Message(
        Role(body["role"]),
        body["text"],
        _read_calls(body.get("calls", ())),
        body.get("call_id", ""),
        body.get("failed", False),
        _read_native(body),
    )


def _read_calls(bodies: list[list[str]]) -> tuple[ToolCall, ...]:
    return tuple(ToolCall(*body) for body in bodies)


def _read_native(body: Mapping[str, Any]) -> Native | None:
    return Native(*body["native"]) if body.get("native") else None


def _count_common(new: object, old: object) -> int:
    """Return the number of turns that two conversations share at their beginning."""
    shared = 0
    if isinstance(new, list) and isinstance(old, list):
        for one, other in zip(new, old, strict=False):
            if not _is_same_json(one, other):
                break
            shared += 1
    return shared


def _is_same_json(one: object, other: object) -> bool:
    """Return whether two JSON values have the same JSON text; Python treats 1, 1.0 and true as equal."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            _is_same_json(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same_json, one, other))
    return type(one) is type(other) and one == other


AnyCall = ModelCalled | CallStarted | CallBooked
UNANSWERED_BYTES = 4_000_000
"""Bytes of one action's refused and failed requests that are stored; the repetition of a later one is asked again."""
_LINKS = 32
"""Number of requests that may build on each other before one is stored whole."""
_KEPT = 64
"""Number of whole requests that a writer or a reader keeps, on which others build."""


class CallReader:
    """Reads the calls of one run; fast in the order of an action's calls."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._whole: OrderedDict[tuple[int, int], Record] = OrderedDict()

    def request(self, call: AnyCall) -> AnyRequest:
        """Return the request of a call in its recorded form.

        Raises:
            ArchiveCorrupt: it is missing or damaged.
        """
        with _naming(call, "request"):
            return read_request(self._whole_record(call.action, call.number))

    def reply(self, call: ModelCalled) -> AnyReply:
        """Return the reply of a call in its recorded form; raises like ``request``."""
        with _naming(call, "reply"):
            return decode_reply(self._load(call.action, call.number, "reply"))

    def exchange(self, call: ModelCalled) -> tuple[Request, Reply]:
        """Return request and reply in dgm's form, for people, evidence and exports; raises like ``request``."""
        with _naming(call, "exchange"):
            request, reply = self.request(call), self.reply(call)
            body = request.body if isinstance(request, WireRequest) else {}
            if isinstance(request, WireRequest):
                request = WIRES[request.protocol].read_request(body)
            return request, reply if isinstance(reply, Reply) else reply_of(reply, body)

    def _whole_record(self, action: int, number: int) -> Record:
        record = self._whole.get((action, number))
        if record is None:
            record = parse_json(self._load(action, number, "request"))
            if "base" in record:
                record = complete(record, self._whole_record(action, int(record["base"])))
            self._whole[action, number] = record
            if len(self._whole) > _KEPT:
                self._whole.popitem(last=False)
        return record

    def _load(self, action: int, number: int, column: Literal["request", "reply"]) -> bytes:
        """Return the JSON of a request or a reply."""
        query = f"SELECT {column} FROM calls WHERE action = ? AND number = ?"
        ((packed,),) = self._log.query(query, (action, number))
        if packed is None:
            raise LookupError(f"call {number} has none")
        return zlib.decompress(packed)


def reply_of(reply: WireReply, body: Mapping[str, Any]) -> Reply:
    """Return a raw reply in dgm's form; ``body`` is the body of its request."""
    if reply.error:
        return Reply(reply.content.decode("utf-8", "replace"), usage=reply.usage, error=reply.error)
    read = WIRES[reply.protocol].read_reply(whole_of(reply, body), body)
    return Reply(read.text, read.calls, read.stop, reply.usage, read.reasoning, read.native, read.error)


@dataclass(frozen=True, slots=True)
class _Stored:
    """A stored request, on which a later one may build."""

    number: int
    record: Record
    size: int
    links: int
    """Number of other requests that must be read to read this one."""


class CallWriter:
    """Writes the rows of one run's calls, each in the transaction of its events (``Run.commit``)."""

    def __init__(
        self, pack: Callable[[bytes], bytes] = zlib.compress, unanswered_bytes: int = UNANSWERED_BYTES
    ) -> None:
        """Create a writer that builds on no request yet.

        Args:
            pack: compresses the JSON of a request or a reply.
            unanswered_bytes: bytes of one action's refused and failed requests that are stored.
        """
        self._pack = pack
        self._unanswered_bytes = unanswered_bytes
        self._last: OrderedDict[int, _Stored] = OrderedDict()
        self._begun: dict[tuple[int, int], _Stored] = {}
        self._unanswered: dict[int, int] = {}

    def begin(self, log: sqlite3.Connection, action: int, number: int, request: AnyRequest) -> None:
        """Write the request of a call that is not answered yet."""
        record, base = request_record(request), self._last.get(action)
        short = shorten(record, base.record, base.number) if base and base.links < _LINKS else record
        data = self._pack(dump(short).encode())
        # Replaced is only the row of an unanswered call: the log has no second answer of a call.
        log.execute(
            "INSERT OR REPLACE INTO calls(action, number, request) VALUES (?, ?, ?)", (action, number, data)
        )
        links = base.links + 1 if base and "base" in short else 0
        self._begun[action, number] = _Stored(number, record, len(data), links)

    def answer(
        self, log: sqlite3.Connection, action: int, number: int, request: AnyRequest, reply: AnyReply
    ) -> None:
        """Write the reply of a call, which need not have begun."""
        if (action, number) not in self._begun:
            self.begin(log, action, number, request)
        if reply.error:
            self.fail(log, action, number)
        else:
            self._last[action] = self._begun.pop((action, number))
            self._last.move_to_end(action)
            if len(self._last) > _KEPT:
                self._last.popitem(last=False)
        log.execute(
            "UPDATE calls SET reply = ? WHERE action = ? AND number = ?",
            (self._pack(encode_reply(reply)), action, number),
        )

    def fail(self, log: sqlite3.Connection, action: int, number: int) -> None:
        """Keep the request of a refused or failed call; beyond the bound, an empty one that equals no other."""
        stored = self._begun.pop((action, number), None)
        if stored is None:
            return
        self._unanswered[action] = self._unanswered.get(action, 0) + stored.size
        if self._unanswered[action] > self._unanswered_bytes:
            request = read_request(stored.record)
            nothing = replace(request, body={}) if isinstance(request, WireRequest) else Request(())
            data = self._pack(dump(request_record(nothing)).encode())
            log.execute(
                "UPDATE calls SET request = ? WHERE action = ? AND number = ?", (data, action, number)
            )

    def forget(self) -> None:
        """Build on nothing that was written so far: a transaction failed."""
        self._last.clear()
        self._begun.clear()


@contextmanager
def _naming(call: AnyCall, what: str) -> Iterator[None]:
    """Raise any fault of a record as ``ArchiveCorrupt``."""
    try:
        yield
    except ArchiveCorrupt:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
        zlib.error,
    ) as error:
        raise ArchiveCorrupt(
            f"action {call.action}, call {call.number}: its {what} cannot be read: {error!r}"
        ) from error
