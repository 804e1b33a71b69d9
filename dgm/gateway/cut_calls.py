"""The usage that is counted for calls without an answer: cut off, broken, or answered later by a repetition."""

import logging
from dataclasses import replace

from dgm.domain import Usage
from dgm.errors import Infrastructure
from dgm.gateway.calls import ProviderCall
from dgm.gateway.lease import Lease
from dgm.gateway.ledger import Ledger, WorstCase
from dgm.messages import BegunCall, CutCall, WireReply
from dgm.protocols import Journal

log = logging.getLogger(__name__)


def book_unanswered(journal: Journal, ledger: Ledger, lease: Lease, call: ProviderCall) -> None:
    """Count a call without a recorded answer: at the waste of its tries, or at its worst case if it is cut off.

    A call is cut off if it was at the provider, or answered by it, and no error of the model has ended it.
    """
    key, name, role = call.key, lease.model.name, lease.role
    if not call.begun or key is None:
        return
    if not call.paying:
        journal.book(key.action, key.number, name, role, ledger.priced(name, call.wasted))
        return
    try:
        journal.lose(BegunCall(key, name, role, call.request, call.most))
    except Infrastructure as error:
        # The call stays open in the log, and the next session counts it.
        log.warning("%s is not counted yet: %s", key, error)


def settle_cut_calls(
    journal: Journal, ledger: Ledger, lease: Lease, call: ProviderCall, most: WorstCase, reply: WireReply
) -> list[CutCall]:
    """Return the revised usage of cut-off calls with the same request.

    Their input is known now; their output may have reached the limit of the request. A refusal tells nothing.
    """
    if reply.error and not reply.usage.tokens:
        return []
    settled = []
    for cut in journal.cut_calls(lease.action):
        if lease.memory.are_same(cut.request, call.request):
            known = ledger.worst(lease.model.name, most, reply.usage.input_tokens)
            settled.append(replace(cut, booked=_subtract_usage(known, cut.booked)))
    return settled


def _subtract_usage(new: Usage, old: Usage) -> Usage:
    """Return the difference of two usages, as a correction of the old one."""
    return Usage(
        new.calls - old.calls,
        new.input_tokens - old.input_tokens,
        new.output_tokens - old.output_tokens,
        new.usd - old.usd,
        new.cached_tokens - old.cached_tokens,
        new.written_tokens - old.written_tokens,
        new.reasoning_tokens - old.reasoning_tokens,
    )
