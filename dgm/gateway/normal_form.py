"""The normal form of a request: equal for two requests that ask the same under other conditions.

Replies that were paid for, calls under way and recorded requests are found by it. It never changes what is sent.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence

from dgm.archive.volatile_text import UNKNOWN, Conditions, Masks
from dgm.messages import Message, Request, WireRequest
from dgm.wires import WIRES

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

AnyRequest = Request | WireRequest
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
