"""Pairs of surrogates survive any cut of a stream, and halves are replaced, in every protocol."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.domain import Usage
from dgm.messages import WireReply
from dgm.wires import WIRES, whole_of
from tests.support.wires import chat_script, messages_script, responses_script
from tests.support.wires.vendors import BODIES, CHAT, MESSAGES, RESPONSES, passed, sse


def stream_of(protocol, units):
    """Return a streamed answer whose text comes in these pieces."""
    match protocol:
        case "chat":
            chunks = [chat_script.chunk({"content": unit, "reasoning": unit}) for unit in units]
            return sse(*chunks, chat_script.chunk(finish="stop"))
        case "responses":
            begun = responses_script.told(responses_script.SAID)[:4]
            return sse(*begun, *map(responses_script.delta, units), responses_script.completed(), end="")
        case _:
            begun = messages_script.start(), messages_script.begin({"type": "text", "text": ""})
            deltas = [messages_script.delta("text", unit) for unit in units]
            ended = messages_script.halt(), messages_script.end(), messages_script.STOP
            return sse(*begun, *deltas, *ended, end="")


@pytest.mark.parametrize("protocol", [CHAT, RESPONSES, MESSAGES])
@settings(max_examples=25, deadline=None)
@given(text=st.text(alphabet="a😀", min_size=1, max_size=6), cut_off=st.booleans())
def test_pairs_survive_any_cut_and_halves_are_replaced(protocol, text, cut_off):
    halves = text.encode("utf-16-be", "surrogatepass")
    units = [halves[at : at + 2].decode("utf-16-be", "surrogatepass") for at in range(0, len(halves), 2)]
    answer, _ = passed(protocol, stream_of(protocol, units + ["\ud83d"] * cut_off))
    told = whole_of(WireReply(protocol, answer.content, True, Usage()), BODIES[protocol])
    wanted = text + "\ufffd" * cut_off
    assert [WIRES[protocol].read_reply(one, BODIES[protocol]).text for one in (told, answer.whole)] == [
        wanted
    ] * 2
