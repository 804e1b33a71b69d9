"""The memory of one job: paid replies, vendors' native forms of turns, and answers to continue.

Paid replies, calls under way and recorded requests are found by the normal form of a request: equal for two requests
that ask the same under other conditions. It never changes what is sent.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dgm.archive.volatile_text import UNKNOWN, Conditions, Masks
from dgm.gateway.allowed import BadRequest
from dgm.gateway.blame import QUESTION
from dgm.gateway.ledger import AnyRequest
from dgm.messages import (
    CUT_SHORT,
    LEFT_OPEN,
    Exchange,
    Message,
    Native,
    Reply,
    Request,
    Role,
    WireProtocol,
    WireReply,
    WireRequest,
)
from dgm.wires import WIRES, whole_of

SHOWN = 60
"""Characters of each side to show in a difference."""
CONTENT = frozenset(("arguments", "input", "input_schema", "parameters", "schema"))
"""Keys of objects whose keys are the model's or a tool's, not the protocol's."""
SET_HERE = frozenset(
    (
        *("model", "max_tokens", "max_completion_tokens", "max_output_tokens", "stream", "stream_options"),
        *("store", "include", "metadata", "client_metadata", "user", "safety_identifier", "seed"),
        *("prompt_cache_key", "prompt_cache_retention"),
        *("id", "call_id", "tool_call_id", "tool_use_id"),
    )
)
"""Keys that the gateway sets, that identify the caller, or that hold a provider's ids."""

Fact = tuple[str, str]
"""A place in a request and its text."""


class NormalForms:
    """Normal forms under the same conditions; each text is masked once."""

    def __init__(self, conditions: Conditions = UNKNOWN) -> None:
        """Take what is known of then and now."""
        self._masks = Masks(conditions)
        self._texts: dict[bytes, tuple[bytes, tuple[str, ...]]] = {}

    def normal_form(self, request: AnyRequest) -> bytes:
        """Return the digest of a request's normal form; requests in different protocols differ."""
        form, ids = hashlib.sha256(), _Numbers()
        form.update(str(request.protocol if isinstance(request, WireRequest) else "own").encode())
        for place, text in _facts_of(request):
            masked, some = self._mask(text)
            form.update(f"\0{place}\0".encode())
            form.update(masked)
            if some:
                form.update(repr([ids.number(each) for each in some]).encode())
        return form.digest()

    def are_same(self, one: AnyRequest, other: AnyRequest) -> bool:
        """Return whether two requests in one form, dgm's own or a provider's, ask the same."""
        if type(one) is not type(other):
            return False
        return one == other or self.normal_form(one) == self.normal_form(other)

    def first_difference(self, one: AnyRequest, other: AnyRequest) -> str | None:
        """Return where two requests first differ, in one line; None when they ask the same.

        A request in dgm's own form and a raw one are compared in dgm's form.
        """
        if isinstance(one, WireRequest) and isinstance(other, WireRequest):
            if one.protocol is not other.protocol:
                return f"protocol: {one.protocol} against {other.protocol}"
        else:
            one, other = own_request(one), own_request(other)
        return self._first_fact_difference(list(_facts_of(one)), list(_facts_of(other)))

    def _mask(self, text: str) -> tuple[bytes, tuple[str, ...]]:
        """Return the digest of a masked text, and its ids."""
        data = text.encode("utf-8", "surrogatepass")
        if len(data) < 4:
            return data, ()
        key = hashlib.sha256(data).digest()
        if key not in self._texts:
            masked, ids = self._masks.mask(text)
            self._texts[key] = hashlib.sha256(masked.encode("utf-8", "surrogatepass")).digest(), ids
        return self._texts[key]

    def _first_fact_difference(self, ours: Sequence[Fact], theirs: Sequence[Fact]) -> str | None:
        numbers, other_numbers = _Numbers(), _Numbers()
        for (place, one), (other_place, other) in zip(ours, theirs, strict=False):
            if place != other_place:
                return f"{place} against {other_place}"
            (masked, ids), (other_masked, other_ids) = self._masks.mask(one), self._masks.mask(other)
            if masked != other_masked:
                return f"{place}: {_quote_difference(masked, other_masked)}"
            if list(map(numbers.number, ids)) != list(map(other_numbers.number, other_ids)):
                return f"{place}: ids that are equal in one differ in the other"
        if len(ours) != len(theirs):
            place, _ = max(ours, theirs, key=len)[min(len(ours), len(theirs))]
            return f"{place}: only in the {'first' if len(ours) > len(theirs) else 'second'}"
        return None


class _Numbers:
    """Numbers of a request's ids, by their first occurrence."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))


def own_request(request: AnyRequest) -> Request:
    """Return a request in dgm's own form."""
    return request if isinstance(request, Request) else WIRES[request.protocol].read_request(request.body)


def _facts_of(request: AnyRequest) -> Iterator[Fact]:
    if isinstance(request, WireRequest):
        return _flatten("", request.body, SET_HERE)
    return _request_facts(request)


def _flatten(place: str, value: object, left_out: frozenset[str]) -> Iterator[Fact]:
    match value:
        case dict():
            for key in sorted(value):
                # A null value equals a missing key.
                if key not in left_out and value[key] is not None:
                    inside = isinstance(value[key], dict) and key in CONTENT
                    below = frozenset[str]() if inside else left_out
                    yield from _flatten(f"{place}.{key}" if place else key, value[key], below)
        case list():
            for at, one in enumerate(value):
                yield from _flatten(f"{place}[{at}]", one, left_out)
        case _:
            yield place, value if isinstance(value, str) else json.dumps(value)


def _request_facts(request: Request) -> Iterator[Fact]:
    yield "temperature", str(request.temperature)
    yield "top_p", str(request.top_p)
    yield "stop", str(request.stop)
    yield "tool_choice", f"{request.tool_choice} {request.parallel}"
    yield "effort", request.effort
    for tool in request.tools:
        text = json.dumps([tool.description, tool.parameters], sort_keys=True)
        yield f"tool {tool.name}", text
    for at, message in enumerate(request.messages):
        yield from _message_facts(f"messages[{at}]", message)


def _message_facts(place: str, message: Message) -> Iterator[Fact]:
    yield f"{place}.role", message.role.value
    yield f"{place}.text", message.text
    for index, call in enumerate(message.calls):
        yield f"{place}.calls[{index}]", f"{call.name} {call.arguments}"


def _quote_difference(one: str, other: str) -> str:
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    start = min(len(one), len(other)) if start is None else start
    near = max(0, start - 10)
    return f"{one[near : near + SHOWN]!r} against {other[near : near + SHOWN]!r} (character {start})"


KEPT = 64
"""Raw answers of one job that a later call may continue."""


class LeaseMemory:
    """The memory of one lease; it ends with the lease.

    Attributes:
        protocols: of the recorded raw exchanges.
    """

    def __init__(self) -> None:
        self._conditions = Conditions.now()
        self._forms = NormalForms(self._conditions)
        self._keys: dict[int, bytes] = {}
        self.protocols: dict[WireProtocol, None] = {}
        self._paid: dict[int, Exchange] = {}
        self._late: dict[int, Exchange] = {}
        self._natives: dict[str, Native] = {}
        self._answers: dict[str, tuple[Message, ...]] = {}
        self._raw: list[tuple[WireRequest, WireReply]] = []

    # Paid replies

    def add(self, exchange: Exchange) -> None:
        """Add one more paid exchange."""
        if exchange.reply.error != CUT_SHORT:
            self._paid[exchange.number] = exchange
        # The neutral question says nothing of the protocol that the agent speaks.
        if isinstance(exchange.request, WireRequest) and not _asks(exchange.request, QUESTION):
            self.protocols[exchange.request.protocol] = None

    def recall(self, paid: Sequence[Exchange], then: Conditions) -> None:
        """Add the recorded exchanges of earlier attempts; their normal forms take time, so it is done in a thread."""
        self._learn(then)
        for exchange in paid:
            self.add(exchange)
            self._keys[exchange.number] = self._forms.normal_form(exchange.request)

    def add_late(self, exchange: Exchange) -> None:
        """Add an exchange that was paid for during the job and that the agent has not received."""
        self._late[exchange.number] = exchange

    @property
    def holds_neutral(self) -> bool:
        """Whether an exchange recorded in dgm's own form is still unused."""
        return any(isinstance(exchange.request, Request) for exchange in self._paid.values())

    @property
    def offers_tools(self) -> bool:
        """A recorded raw request offers tools, or none is recorded whole."""
        raw = [each.request for each in self._paid.values() if isinstance(each.request, WireRequest)]
        # A body of at most one key stands for a request that was too large to be recorded.
        whole = [request.body for request in raw if len(request.body) > 1]
        return not whole or any(body.get("tools") or body.get("functions") for body in whole)

    def holds(self, request: AnyRequest) -> bool:
        """Return whether an unused answer to a request in the same form, dgm's own or a provider's, is there."""
        return bool(self._find(request, (*self._paid.values(), *self._late.values())))

    def take(self, request: AnyRequest, ordinal: int) -> Exchange | None:
        """Return the exchange that answers the request, and mark it used.

        An identical request comes before one of the same normal form, and the one with the request's own number
        before others, so that equal requests keep their order. Concurrent calls may arrive in another order.
        """
        for exchanges in (self._paid, self._late):
            same = self._find(request, exchanges.values())
            if same:
                first = min(
                    same,
                    key=lambda one: (
                        one.reply.error != LEFT_OPEN,
                        one.request != request,
                        one.number != ordinal,
                        one.number,
                    ),
                )
                return exchanges.pop(first.number)
        return None

    def begin_job(self, volatile: Sequence[str], problem: str) -> None:
        """Compare requests without what the agent's own patterns match, and with the ids of the problem statement.

        Args:
            volatile: the patterns (``dgm.archive.volatile_text.check_patterns``).
            problem: the statement; ids in it are not the agent's.
        """
        self._learn(Conditions(patterns=tuple(volatile), statement=problem))

    def are_same(self, one: AnyRequest, other: AnyRequest) -> bool:
        """Return whether two requests of the action in one form, dgm's own or a provider's, ask the same."""
        return self._current_forms().are_same(one, other)

    def _find(self, request: AnyRequest, exchanges: Iterable[Exchange]) -> list[Exchange]:
        """Return the exchanges with the request's normal form."""
        forms, same, wanted = self._current_forms(), [], b""
        for exchange in exchanges:
            if type(exchange.request) is not type(request):
                continue
            wanted = wanted or forms.normal_form(request)
            if exchange.number not in self._keys:
                self._keys[exchange.number] = forms.normal_form(exchange.request)
            if self._keys[exchange.number] == wanted:
                same.append(exchange)
        return same

    def _current_forms(self) -> NormalForms:
        """Return the normal forms, which know a new day when one has begun."""
        self._learn(Conditions.now())
        return self._forms

    def _learn(self, more: Conditions) -> None:
        conditions = self._conditions | more
        if conditions != self._conditions:
            self._conditions, self._keys = conditions, {}
            self._forms = NormalForms(conditions)

    def has_answer(self, question: str) -> bool:
        """Return whether an unused exchange answers this text alone."""
        answered = (exchange.request for exchange in self._paid.values() if not exchange.reply.error)
        return any(_asks(request, question) for request in answered)

    def difference(self, request: AnyRequest, ordinal: int) -> str | None:
        """Return the difference between the request and the one recorded in its place; None where none is left."""
        if not self._paid:
            return None
        number = ordinal if ordinal in self._paid else min(self._paid)
        return self._current_forms().first_difference(self._paid[number].request, request)

    # Vendors' native forms, for translations between protocols

    def add_native_forms(self, request: Request) -> Request:
        """Return the request with the vendor's native form of each turn that the model wrote in this job.

        Agents leave out fields that their protocol does not know (reasoning, signatures); vendors want them back
        unchanged.
        """
        if not self._natives:
            return request
        return replace(
            request, messages=tuple(self._add_native_form(message) for message in request.messages)
        )

    def _add_native_form(self, message: Message) -> Message:
        native = self._natives.get(_turn_key(message)) if message.role is Role.ASSISTANT else None
        return replace(message, native=native) if native else message

    # Answers to continue

    def remember(self, answer_id: str, before: Sequence[Message], reply: Reply, *, goes_on: bool) -> None:
        """Keep a reply's native form and, if a call may continue it, the conversation that this id stands for."""
        said = Message(Role.ASSISTANT, reply.text, reply.calls, native=reply.native)
        if reply.native:
            self._natives[_turn_key(said)] = reply.native
        if goes_on:
            self._answers[answer_id] = (*before, said)

    def conversation(self, answer_id: str) -> Sequence[Message]:
        """Return the conversation up to that answer.

        Raises:
            BadRequest: this job has had no such answer.
        """
        if answer_id not in self._answers:
            raise _unknown_answer(answer_id)
        return self._answers[answer_id]

    def remember_raw(self, request: WireRequest, reply: WireReply) -> None:
        """Keep a raw answer of the Responses protocol, which a later call may continue."""
        self._raw = [*self._raw[-KEPT + 1 :], (request, reply)]

    def continued(self, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the body with the whole earlier conversation in place of ``previous_response_id``.

        Raises:
            BadRequest: this job has had no such answer.
        """
        answer_id = body.get("previous_response_id")
        if answer_id is None:
            return body
        rest = {key: value for key, value in body.items() if key != "previous_response_id"}
        for request, reply in reversed(self._raw):
            whole = whole_of(reply, request.body)
            if whole.get("id") == answer_id:
                earlier = [*_items_of(request.body.get("input")), *_items_of(whole.get("output"))]
                return {**rest, "input": [*earlier, *_items_of(body.get("input"))]}
        raise _unknown_answer(str(answer_id))


def _asks(request: AnyRequest, question: str) -> bool:
    """Return whether a request consists of this text alone."""
    return [message.text for message in own_request(request).messages] == [question]


def _items_of(value: object) -> list[Any]:
    """Return the items of an input or an output; a text becomes a user message."""
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    return list(value) if isinstance(value, list) else []


def _unknown_answer(answer_id: str) -> BadRequest:
    return BadRequest(
        f"there is no earlier answer {answer_id[:80]!r} in this job", "previous_response_not_found"
    )


def _turn_key(message: Message) -> str:
    """Return the mark that identifies an assistant's turn: its calls' ids, else its text."""
    if message.calls:
        return "calls " + " ".join(call.id for call in message.calls)
    return "text " + message.text
