"""Requests and replies as traces: what repeats is stored once, and a trace of another kind is named."""

import json
from types import SimpleNamespace

import pytest

from dgm.archive.exchange import RequestBase, decode_request, encode_request
from dgm.archive.journal import read_recorded_request, read_reply
from dgm.archive.traces import Traces
from dgm.domain import Digest
from dgm.errors import ArchiveCorrupt
from dgm.messages import Message, Request, Role


def conversation(*texts):
    return Request(tuple(Message(Role.USER, text) for text in texts))


def test_a_request_repeats_the_equal_messages_of_an_earlier_one():
    earlier, later = conversation("a", "b", "c"), conversation("a", "b", "d", "e")
    data = encode_request(later, RequestBase(Digest("f" * 64), earlier))
    assert json.loads(data)["kept"] == 2
    assert [one["text"] for one in json.loads(data)["messages"]] == ["d", "e"]
    assert decode_request(data, earlier) == later


@pytest.mark.parametrize("read", [read_reply, read_recorded_request])
def test_a_trace_of_another_kind_is_named_and_a_missing_one_called_missing(tmp_path, read):
    run = SimpleNamespace(traces=Traces(tmp_path))
    other = run.traces.put(b"[]")
    with pytest.raises(ArchiveCorrupt, match=f"^trace {other} is not a re"):
        read(run, other)
    with pytest.raises(ArchiveCorrupt, match=r"trace f{64} is missing$"):
        read(run, Digest("f" * 64))
