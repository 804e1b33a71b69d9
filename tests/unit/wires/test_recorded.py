"""Replies that earlier versions recorded are read as they were: streamed and whole, mended and as they came."""

import dataclasses
import json
from pathlib import Path

import pytest

from dgm.domain import Usage
from dgm.messages import WireProtocol, WireReply
from dgm.wires import WIRES, whole_of

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())


@pytest.mark.parametrize("record", RECORDED, ids=lambda record: f"{record['protocol']}, {record['name']}")
def test_a_recorded_reply_is_read_as_before(record):
    protocol, body = WireProtocol(record["protocol"]), record["request"]
    reply = WireReply(protocol, record["content"].encode(), record["stream"], Usage())
    read = WIRES[protocol].read_reply(whole_of(reply, body), body)
    assert {
        "text": read.text,
        "calls": [[call.id, call.name, call.arguments] for call in read.calls],
        "stop": read.stop.value,
        "reasoning": read.reasoning,
        "usage": dataclasses.asdict(read.usage),
        "native": read.native and json.loads(read.native.data),
    } == record["read"]
