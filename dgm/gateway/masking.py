"""Comparison of two requests for a replay, after masking the parts that differ between any two runs."""

import json
import re
from collections.abc import Iterator, Sequence

from dgm.gateway.withheld import SET_HERE, is_withheld, stands_for
from dgm.messages import Message, Request, WireRequest
from dgm.wires import WIRES

SHOWN = 60
"""Characters of each side to show in a difference."""

MASKS = (
    (re.compile(r"0x[0-9a-fA-F]{4,16}\b"), "<address>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)?(?: ?(?:s|ms|us|µs|ns|sec|seconds)\b)"), "<duration>"),
    (re.compile(r"/(?:var/)?tmp/[\w.+-]+"), "<temporary>"),
    (re.compile(r"/dev/shm/[\w.+-]+"), "<temporary>"),
    (re.compile(r"\b(pid|PID|process|Process)([ =:#]+)\d+"), r"\1\2<pid>"),
    (re.compile(r"/proc/\d+\b"), "/proc/<pid>"),
    (re.compile(r"\b(127\.0\.0\.1|localhost):\d+"), r"\1:<port>"),
)


def mask_volatile(text: str) -> str:
    """Return the text without timings, clock times, addresses, temporary paths, process ids and local ports."""
    for pattern, mask in MASKS:
        text = pattern.sub(mask, text)
    return text


def first_difference(a: Request | WireRequest, b: Request | WireRequest) -> str | None:
    """Return where two requests first differ once masked, in one line; None when they ask the same.

    Settings of the gateway (the model's name, the bound on the output) and vendors' additions are not compared. A
    request in dgm's own form and a raw one are compared in dgm's form.
    """
    if is_withheld(a) or is_withheld(b):
        same = a == b or stands_for(a, b) or stands_for(b, a)
        return None if same else "one is recorded by its digest alone, and is not the other"
    if isinstance(a, WireRequest) and isinstance(b, WireRequest):
        if a.protocol is not b.protocol:
            return f"protocol: {a.protocol} against {b.protocol}"
        return (
            None
            if a.body == b.body
            else _first_fact_difference(list(_flatten("", a.body)), list(_flatten("", b.body)))
        )
    return _first_fact_difference(list(_request_facts(own_request(a))), list(_request_facts(own_request(b))))


def own_request(request: Request | WireRequest) -> Request:
    """Return a request in dgm's own form."""
    return request if isinstance(request, Request) else WIRES[request.protocol].read_request(request.body)


def _flatten(place: str, value: object) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for key in sorted(value):
                # A null value equals a missing key.
                if key not in SET_HERE and value[key] is not None:
                    yield from _flatten(f"{place}.{key}" if place else key, value[key])
        case list():
            for at, one in enumerate(value):
                yield from _flatten(f"{place}[{at}]", one)
        case _:
            yield place, value if isinstance(value, str) else json.dumps(value)


def _first_fact_difference(ours: Sequence[tuple[str, str]], theirs: Sequence[tuple[str, str]]) -> str | None:
    for (place, one), (other_place, other) in zip(ours, theirs, strict=False):
        if place != other_place:
            return f"{place} against {other_place}"
        if one != other and mask_volatile(one) != mask_volatile(other):
            return f"{place}: {_quote_difference(mask_volatile(one), mask_volatile(other))}"
    if len(ours) != len(theirs):
        place, _ = max(ours, theirs, key=len)[min(len(ours), len(theirs))]
        return f"{place}: only in the {'first' if len(ours) > len(theirs) else 'second'}"
    return None


def _request_facts(request: Request) -> Iterator[tuple[str, str]]:
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


def _message_facts(place: str, message: Message) -> Iterator[tuple[str, str]]:
    yield f"{place}.role", message.role.value
    yield f"{place}.text", message.text
    for index, call in enumerate(message.calls):
        yield f"{place}.calls[{index}]", f"{call.name} {call.arguments}"


def _quote_difference(one: str, other: str) -> str:
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    start = min(len(one), len(other)) if start is None else start
    near = max(0, start - 10)
    return f"{one[near : near + SHOWN]!r} against {other[near : near + SHOWN]!r} (character {start})"
