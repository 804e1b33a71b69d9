"""Server-sent events are cut into records with the bytes that they came in."""

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.wires import sse
from dgm.wires.events import Event, UnusableReply
from tests.support.wires.vendors import read_records

A, B = '{"a":1}', '{"b":2}'


def data_of(*pieces):
    return [record.data for record in read_records(*pieces)]


def test_records_keep_their_bytes():
    first, second = f"event: x\ndata: {A}\n\n".encode(), f"data: {B}\n\n".encode()
    found = read_records(first + second)
    assert [(record.raw, record.name, record.data) for record in found] == [(first, "x", A), (second, "", B)]


@pytest.mark.parametrize(
    "noise",
    [
        "retry: 3000\n\n",
        ": ping\n\n",
        "id: 7\n\n",
        "event: ping\n\n",
        "data:\n\n",
        "data: \n\n",
        "\n\n",
        ": a\n: b\n\n",
    ],
)
def test_records_without_data_are_dropped(noise):
    found = read_records(f"{noise}data: {A}\n\n{noise}data: {B}\n\n{noise}".encode())
    assert [record.data for record in found] == [A, B]
    assert b"".join(record.raw for record in found) == f"data: {A}\n\ndata: {B}\n\n".encode()


def test_comment_within_a_record_stays_in_its_bytes():
    raw = f": OPENROUTER PROCESSING\nid: 3\ndata: {A}\n\n".encode()
    assert [record.raw for record in read_records(raw)] == [raw]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@settings(max_examples=30, deadline=None)
@given(cuts=st.lists(st.integers(0, 80), max_size=6))
def test_cuts_and_line_ends_change_nothing(end, cuts):
    whole = f"\ufeffevent: x{end}data: {A}{end}{end}: c{end}{end}data: [DONE]{end}{end}".encode()
    places = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    pieces = [whole[a:b] for a, b in itertools.pairwise(places)]
    assert data_of(*pieces) == [A, "[DONE]"]


@pytest.mark.parametrize(
    ("tail", "kept"), [(f"data: {A}", [A]), ("data: [DONE]\n", ["[DONE]"]), ('data: {"a', [])]
)
def test_last_record_without_blank_line_counts_if_it_is_whole(tail, kept):
    assert data_of(f"data: {B}\n\n".encode(), tail.encode()) == [B, *kept]


def test_last_record_gets_its_blank_line():
    assert read_records(b"data: [DONE]")[0].raw == b"data: [DONE]\n\n"


def test_event_without_end_is_bounded(monkeypatch):
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 100)
    with pytest.raises(UnusableReply):
        read_records(*[b"data: " + b"x" * 60] * 2)


def test_broken_connection_is_told():
    async def torn():
        yield f"data: {A}\n\n".encode()
        raise ConnectionResetError

    async def scenario():
        return [record async for record in sse.read_events(torn())]

    with pytest.raises(ConnectionResetError):
        asyncio.run(scenario())


def test_event_is_rendered_in_ascii():
    assert Event({"a": "ä\u2028\ud83d"}, "x").render() == b'event: x\ndata: {"a":"\\u00e4\\u2028\\ud83d"}\n\n'
    assert Event("[DONE]").render() == b"data: [DONE]\n\n"


def test_events_that_one_line_end_parts_become_several():
    found = read_records(f"event: x\ndata: {A}\ndata: {B}\n\ndata: {B}\ndata: [DONE]\n\n".encode())
    assert [(record.name, record.data) for record in found] == [("x", A), ("x", B), ("", B), ("", "[DONE]")]
    assert found[0].raw == f"event: x\ndata: {A}\n\n".encode()


def test_data_on_several_lines_stays_one_record():
    raw = b'data: {"a":\ndata: 1}\n\n'
    assert [(record.raw, record.data) for record in read_records(raw)] == [(raw, '{"a":\n1}')]
