"""The recorded model calls of a run: their requests and replies in the table ``calls`` of its log.

Each row belongs to the events of one call, and is written in their transaction.
"""

import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

from dgm.archive.events import CallBooked, CallStarted, ModelCalled
from dgm.archive.exchange import (
    AnyReply,
    AnyRequest,
    Record,
    complete,
    decode_reply,
    dump,
    encode_reply,
    read_request,
    request_record,
    shorten,
)
from dgm.archive.log import Log
from dgm.bounded_reading import parse_json
from dgm.errors import ArchiveCorrupt
from dgm.messages import Reply, Request, WireReply, WireRequest
from dgm.wires import WIRES, whole_of

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
