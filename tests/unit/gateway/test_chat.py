"""Chat completions: what of a request reaches the model, what is refused, what the vendor's client reads."""

import json

import pytest

from dgm.gateway.allowed import BadRequest
from dgm.gateway.translation import parse_document
from dgm.messages import Message, Role, ToolCall
from dgm.wires import CHAT
from tests.support.gateway import wire_bench
from tests.support.gateway.wire_bench import CALLED, SCHEMA, openai_client, with_client

USER = {"role": "user", "content": "go"}
TOOL = {"type": "function", "function": {"name": "bash", "description": "Run it.", "parameters": SCHEMA}}


def parse(**body):
    return wire_bench.parse(CHAT, {"messages": [USER], **body})


def test_every_wish_for_the_model_is_carried():
    request = parse(
        model="m",
        tools=[TOOL],
        tool_choice={"type": "function", "function": {"name": "bash"}},
        parallel_tool_calls=False,
        stop=["END", "###"],
        top_p=0.5,
        temperature=0.25,
        reasoning_effort="low",
        max_completion_tokens=99,
    ).request
    assert (request.model, request.tool_choice, request.parallel) == ("m", "tool:bash", False)
    assert (request.stop, request.top_p, request.temperature) == (("END", "###"), 0.5, 0.25)
    assert (request.effort, request.max_output_tokens) == ("low", 99)
    assert request.tools[0].parameters == SCHEMA


def test_infinite_number_within_a_schema_is_refused():
    with pytest.raises(BadRequest):
        parse_document(
            json.dumps({"messages": [USER], "tools": [TOOL]}).replace('"string"', "1e999").encode()
        )


def test_reasoning_that_comes_back_is_left_to_the_gateway():
    turn = {
        "role": "assistant",
        "content": "Hm.",
        "reasoning_content": "x",
        "reasoning": "x",
        "reasoning_details": [{"type": "reasoning.text"}],
        "annotations": [],
        "audio": None,
        "refusal": None,
    }
    assert parse(messages=[turn, USER]).request.messages[0] == Message(Role.ASSISTANT, "Hm.")


def test_half_a_surrogate_pair_within_a_schema_does_no_harm():
    body = b'{"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function", "function": '
    body += b'{"name": "f", "parameters": {"title": "\\uD83D"}}}]}'
    assert wire_bench.parse(CHAT, body).request.tools[0].parameters == {"title": "?"}


def test_answer_with_malformed_arguments_is_told_as_it_is():
    async def talk(vendor):
        return await vendor.chat.completions.create(model="default", messages=[USER])

    reply = CALLED.__class__("", (ToolCall("c", "bash", '{"command":'),))
    message = with_client(openai_client, talk, reply)[0].choices[0].message
    assert (message.content, message.tool_calls[0].function.arguments) == (None, '{"command":')
