"""What was paid for: every model exchange is in the traces and the log before its reply is handed on."""

from collections import OrderedDict

from dgm.archive.events import ModelCalled
from dgm.archive.exchange import Base, base_of, decode_reply, decode_request, encode_reply, encode_request
from dgm.archive.run import Run
from dgm.domain import ActionId, Digest
from dgm.errors import ArchiveCorrupt, BudgetExhausted
from dgm.messages import CallKey, Reply, Request

_CONVERSATIONS = 64
"""Conversations whose last request is kept in memory, for the next one to build on."""
_LINKS = 32
"""A request is stored whole after so many that build on each other."""


class RunJournal:
    """The gateway's journal of one run: ``dgm.protocols.Journal``.

    A reply is only found again under the number and action that it was recorded for; the request is not
    compared.
    """

    def __init__(self, run: Run, model: str) -> None:
        self._run = run
        self._model = model
        self._last: OrderedDict[ActionId, Base] = OrderedDict()

    def recorded(self, key: CallKey) -> Reply | None:
        """The reply that was already paid for under this key, if there is one.

        Raises:
            ArchiveCorrupt: there is one, but its trace is missing or damaged.
        """
        call = self._run.store.call(key.action, key.number)
        return read_reply(self._run, call.reply) if call else None

    def asked(self, key: CallKey) -> Request | None:
        """The request of a call that was already paid for, if there is one; raises as ``recorded``."""
        call = self._run.store.call(key.action, key.number)
        return read_request(self._run, call.request) if call else None

    def afford(self, key: CallKey) -> None:
        """Agrees to one more call that is to be paid; calls under way are not counted yet.

        Raises:
            BudgetExhausted: the run's tokens are spent.
        """
        limit, spent = self._run.tree.budget.tokens, self._run.tree.spend.tokens
        if limit is not None and spent >= limit:
            raise BudgetExhausted(f"{spent:,} of {limit:,} tokens are spent (action {key.action})")

    def record(self, key: CallKey, role: str, request: Request, reply: Reply, seconds: float) -> None:
        """Makes the exchange durable; returns only when it is on disk.

        Raises:
            Infrastructure: the disk is full or failing; nothing was recorded.
            DgmError: a call is already recorded under this key.
        """
        asked = self._put_request(key.action, request)
        answered = self._run.traces.put(encode_reply(reply), limit=None)
        self._run.append(
            ModelCalled(key.action, key.number, self._model, role, asked, answered, reply.usage, seconds)
        )

    def _put_request(self, action: ActionId, request: Request) -> Digest:
        base = self._last.pop(action, None)
        if base and base.links >= _LINKS:
            base = None
        digest = self._run.traces.put(encode_request(request, base), limit=None)
        self._last[action] = Base(digest, request, base.links + 1 if base else 0)
        if len(self._last) > _CONVERSATIONS:
            self._last.popitem(last=False)
        return digest


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
