"""Reads what was paid for: the model exchanges of a run, from its log and traces."""

from collections.abc import Sequence

from dgm.archive.exchange import base_of, decode_reply, decode_request
from dgm.archive.run import Run
from dgm.domain import ActionId, Digest
from dgm.errors import ArchiveCorrupt
from dgm.messages import Exchange, Reply, Request


def exchanges(run: Run, action: ActionId) -> Sequence[Exchange]:
    """What an action was answered so far, in the order of its calls; raises as ``read_reply``."""
    return [
        Exchange(call.number, read_request(run, call.request), read_reply(run, call.reply))
        for call in run.store.calls(action)
    ]


def read_reply(run: Run, digest: Digest) -> Reply:
    """A recorded reply, by the trace that a ``ModelCalled`` names.

    Raises:
        ArchiveCorrupt: the trace is missing, damaged or not a reply.
    """
    try:
        return decode_reply(run.traces.get(digest))
    except (ValueError, LookupError, TypeError) as error:
        raise _not_what(digest, "reply", error) from error


def read_request(run: Run, digest: Digest) -> Request:
    """A recorded request, put together from the traces that it builds on; raises as ``read_reply``."""
    try:
        waiting: list[bytes] = []
        following: Digest | None = digest
        while following:
            waiting.append(run.traces.get(following))
            following = base_of(waiting[-1])
        request = decode_request(waiting.pop())
        while waiting:
            request = decode_request(waiting.pop(), request)
    except (ValueError, LookupError, TypeError) as error:
        raise _not_what(digest, "request", error) from error
    return request


def _not_what(digest: Digest, what: str, error: Exception) -> ArchiveCorrupt:
    if isinstance(error, ArchiveCorrupt):
        return error
    return ArchiveCorrupt(f"trace {digest} is not a {what}: {error!r}")
