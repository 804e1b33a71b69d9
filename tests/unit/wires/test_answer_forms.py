"""The form of an answer in each protocol; a request without one is written as before."""

import pytest

from dgm.messages import AnswerForm, Message, Request, Role, WireProtocol
from dgm.wires import WIRES

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
FORM = AnswerForm("issue", SCHEMA)
ASKED = Request((Message(Role.USER, "Which one?"),), max_output_tokens=50)
STRICT = {"name": "issue", "schema": SCHEMA, "strict": True}


@pytest.mark.parametrize(
    ("protocol", "written"),
    [
        (WireProtocol.CHAT, {"response_format": {"type": "json_schema", "json_schema": STRICT}}),
        (WireProtocol.RESPONSES, {"text": {"format": {"type": "json_schema", **STRICT}}}),
        (WireProtocol.MESSAGES, {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
    ],
)
def test_a_form_is_written_in_the_words_of_the_protocol_and_adds_nothing_else(protocol, written):
    wire = WIRES[protocol]
    without = wire.write_request(ASKED, "m")
    formed = wire.write_request(Request(ASKED.messages, max_output_tokens=50, form=FORM), "m")
    assert formed == {**without, **written}
    assert not set(without) & set(written)


def test_a_form_and_an_effort_share_one_object_of_messages():
    request = Request(ASKED.messages, effort="low", form=FORM)
    written = WIRES[WireProtocol.MESSAGES].write_request(request, "m")["output_config"]
    assert written == {"effort": "low", "format": {"type": "json_schema", "schema": SCHEMA}}
