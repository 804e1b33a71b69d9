"""A request with no counterpart in another protocol is refused, and the reason names it."""

import pytest

from dgm.gateway.allowed import BadRequest
from dgm.messages import WireProtocol
from dgm.wires import WIRES
from tests.support.gateway.wire_bench import parse

USER = {"role": "user", "content": "go"}
BASE = {
    "chat": {"messages": [USER]},
    "responses": {"input": "go"},
    "messages": {"messages": [USER], "max_tokens": 9000},
}


def said(role="user", **block):
    return {"messages": [{"role": role, "content": [block]}, USER]}


@pytest.mark.parametrize(
    ("protocol", "body", "named"),
    [
        ("chat", {"functions": [{"name": "f"}]}, "functions"),
        ("chat", {"function_call": "auto"}, "function_call"),
        ("chat", {"response_format": {"type": "json_object"}}, "response_format"),
        ("chat", {"logprobs": True}, "logprobs"),
        ("chat", {"tools": [{"type": "custom", "custom": {"name": "c"}}]}, "'custom'"),
        ("chat", said(type="input_audio", input_audio={}), "'input_audio'"),
        ("chat", said(type="file", file={}), "'file'"),
        ("responses", {"input": [{"type": "web_search_call", "id": "ws_1"}]}, "'web_search_call'"),
        ("responses", {"tools": [{"type": "function"}]}, "has no name"),
        ("responses", {"tools": [{"type": "custom", "name": ["x"]}]}, "has no name"),
        ("responses", {"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format"),
        ("messages", {"output_config": {"format": {"type": "json_schema"}}}, "output_config.format"),
        ("messages", {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "'bash_20250124'"),
        ("messages", said(type="document", source={}), "'document'"),
        ("messages", said(type="search_result"), "'search_result'"),
        ("messages", said("assistant", type="server_tool_use"), "'server_tool_use'"),
        ("messages", {"messages": [USER, {"role": "assistant", "content": "It is ("}]}, "go on within it"),
    ],
)
def test_what_is_not_carried_is_refused_and_named(protocol, body, named):
    with pytest.raises(BadRequest) as caught:
        parse(WIRES[WireProtocol(protocol)], {**BASE[protocol], **body})
    assert named in str(caught.value)
    assert caught.value.status == 400
