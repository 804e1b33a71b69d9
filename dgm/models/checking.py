"""The check of a model before money flows: one small real call with a tool and the parameters that agents use."""

from collections.abc import Mapping
from typing import Any

from dgm.messages import Message, Request, Role, Tool, WireProtocol, WireReply, WireRequest
from dgm.wires import WIRES, whole_of

OUTPUT_TOKENS = 16_000
"""What agents ask for where the settings say nothing else; the answer itself is a few tokens."""
TOOL = Tool(
    "bash",
    "Run a shell command and return its output.",
    {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
)
QUESTION = "This is a check of the connection. Call the tool bash once with the command `true`."
NO_TOOL_CALL = "this model does not call tools: it answered the check, which asks for a call, in text"


def check_request(
    protocol: WireProtocol, own_name: str, *, tools: bool, output: int = OUTPUT_TOKENS
) -> WireRequest:
    """Return the request of the check in a protocol; without ``tools`` it offers none."""
    request = Request(
        messages=(Message(Role.SYSTEM, "You are a programmer."), Message(Role.USER, QUESTION)),
        tools=(TOOL,) if tools else (),
        temperature=0.0,
        max_output_tokens=output,
    )
    return WireRequest(protocol, WIRES[protocol].write_request(request, own_name))


def words_of_check(reply: WireReply, request: WireRequest) -> list[str]:
    """Return what a person should know of the answer; nothing where it calls the tool."""
    body: Mapping[str, Any] = request.body
    answer = WIRES[reply.protocol].read_reply(whole_of(reply, body), body)
    return [] if answer.calls else [NO_TOOL_CALL]
