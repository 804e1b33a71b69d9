"""Reader of the paid model exchanges of a run, from its log and traces.

Exchanges with a provider are kept as the JSON that was sent and received. Exchanges of models without a wire protocol
(the offline model, plug-ins), and all of runs before 0.2, are kept in dgm's own form. ``read_request`` and
``read_reply`` return dgm's form for both, for people, evidence and exports.
"""

from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dgm.archive.events import ModelCalled, RunStarted
from dgm.archive.exchange import decode_reply, decode_request
from dgm.archive.run import Run
from dgm.archive.traces import Traces
from dgm.archive.wire_exchange import decode_wire_reply, decode_wire_request, is_wire
from dgm.bounded_reading import parse_json
from dgm.domain import ActionId, Digest
from dgm.errors import ArchiveCorrupt
from dgm.messages import CutCall, Exchange, Reply, Request, WireReply, WireRequest
from dgm.wires import WIRES, whole_of

_DECODED = 64
"""Number of decoded requests that are kept while an action's calls are read: the bases of the next ones."""
MAX_LINKS = 1_000
"""Maximum number of requests that a recorded request builds on; the gateway ends a chain far earlier."""


def exchanges(run: Run, action: ActionId) -> Sequence[Exchange]:
    """Return the answered exchanges of an action, in the order of its calls; raises like ``read_reply``."""
    return [
        Exchange(call.number, read_recorded_request(run, call.request), read_recorded_reply(run, call.reply))
        for call in run.store.calls(action)
    ]


def cut_calls(run: Run, action: ActionId) -> Sequence[CutCall]:
    """Return the action's calls that the death of a process cut off and that have no answer since."""
    return [
        CutCall(
            number,
            read_recorded_request(run, Digest(booked.request)),
            booked.model,
            booked.role,
            booked.usage,
        )
        for (whose, number), booked in sorted(run.tree.model_calls.cut.items())
        if whose == action
    ]


def read_benchmarks(run: Run) -> Sequence[str]:
    """Return the versions of the benchmark that the run's sessions had, each once, the last one last."""
    sessions = (item.event for item in run.store.select("kind = 'run_started'"))
    own = str(run.config["versions"].get("benchmark", ""))
    versions = [event.benchmark or own for event in sessions if isinstance(event, RunStarted)]
    return list(dict.fromkeys(reversed([own, *versions])))[::-1]


def read_kernels(run: Run) -> Sequence[str]:
    """Return the kernel releases of the run's sessions."""
    sessions = (item.event for item in run.store.select("kind = 'run_started'"))
    return [event.kernel for event in sessions if isinstance(event, RunStarted)]


def read_reply(run: Run, digest: Digest, request: Digest | None = None) -> Reply:
    """Return a recorded reply in dgm's form.

    Args:
        run: the run.
        digest: the trace that a ``ModelCalled`` names.
        request: the trace of the request; without it a few values are estimated less accurately.

    Raises:
        ArchiveCorrupt: a trace is missing, damaged or not a reply.
    """
    reply = read_recorded_reply(run, digest)
    if isinstance(reply, Reply):
        return reply
    asked = read_recorded_request(run, request) if request else None
    body = asked.body if isinstance(asked, WireRequest) else {}
    return reply_of(reply, body)


def reply_of(reply: WireReply, body: Mapping[str, Any]) -> Reply:
    """Return a raw reply in dgm's form; ``body`` is the body of its request."""
    if reply.error:
        return Reply(reply.content.decode("utf-8", "replace"), usage=reply.usage, error=reply.error)
    read = WIRES[reply.protocol].read_reply(whole_of(reply, body), body)
    return Reply(read.text, read.calls, read.stop, reply.usage, read.reasoning, read.native, read.error)


def read_request(run: Run, digest: Digest) -> Request:
    """Return a recorded request in dgm's form; raises like ``read_reply``."""
    request = read_recorded_request(run, digest)
    return request if isinstance(request, Request) else WIRES[request.protocol].read_request(request.body)


def read_calls(traces: Traces, calls: Sequence[ModelCalled]) -> Iterator[tuple[ModelCalled, Request, Reply]]:
    """Yield an action's calls with their whole requests and their replies in dgm's form.

    Raises:
        ArchiveCorrupt: a trace is missing, damaged or of another kind; the calls before it have been yielded.
    """
    decoded: OrderedDict[str, Request | WireRequest] = OrderedDict()
    for call in calls:
        request = _decode_request(traces, call.request, decoded)
        reply = _decode_reply(traces, call.reply)
        decoded[call.request] = request
        if len(decoded) > _DECODED:
            decoded.popitem(last=False)
        if isinstance(reply, WireReply):
            reply = reply_of(reply, request.body if isinstance(request, WireRequest) else {})
        if isinstance(request, WireRequest):
            request = WIRES[request.protocol].read_request(request.body)
        yield call, request, reply


def read_recorded_reply(run: Run, digest: Digest) -> Reply | WireReply:
    """Return a recorded reply in its recorded form; raises like ``read_reply``."""
    return _decode_reply(run.traces, digest)


def read_recorded_request(run: Run, digest: Digest) -> Request | WireRequest:
    """Return a recorded request, composed from the traces that it builds on; raises like ``read_reply``."""
    return _decode_request(run.traces, digest, {})


def _decode_reply(traces: Traces, digest: Digest) -> Reply | WireReply:
    try:
        data = traces.get(digest)
        record = parse_json(data)
        return decode_wire_reply(record) if is_wire(record) else decode_reply(data)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _wrong_kind(digest, "reply", error) from error


def _decode_request(
    traces: Traces, digest: Digest, decoded: Mapping[str, Request | WireRequest]
) -> Request | WireRequest:
    """Return a request; ``decoded``: requests by their traces, which are not read again."""
    try:
        waiting: list[tuple[bytes, Mapping[str, Any]]] = []
        following: str | None = digest
        while following and following not in decoded:
            if len(waiting) > MAX_LINKS:
                raise ArchiveCorrupt(f"trace {digest} builds on more than {MAX_LINKS} other requests")
            data = traces.get(Digest(str(following)))
            waiting.append((data, parse_json(data)))
            following = waiting[-1][1].get("base")
        request = decoded[following] if following else None
        while waiting:
            data, record = waiting.pop()
            if is_wire(record):
                request = decode_wire_request(record, request if isinstance(request, WireRequest) else None)
            else:
                request = decode_request(data, request if isinstance(request, Request) else None)
        assert request is not None
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _wrong_kind(digest, "request", error) from error
    return request


def _wrong_kind(digest: Digest, what: str, error: Exception) -> ArchiveCorrupt:
    if isinstance(error, ArchiveCorrupt):
        return error
    return ArchiveCorrupt(f"trace {digest} is not a {what}: {error!r}")
