"""Messages: blocks become turns, answers are read by the vendor's own client, plain and streamed."""

import json

import pytest

from dgm.messages import Message, Reply, Role, ToolCall
from dgm.wires import MESSAGES
from tests.support.gateway import wire_bench
from tests.support.gateway.wire_bench import CALLED, SAID, SCHEMA, anthropic_client, with_client

USER = {"role": "user", "content": "go"}
TOOL = {"name": "bash", "description": "Run it.", "input_schema": SCHEMA}
THINK = {"type": "adaptive"}
ASK = {"model": "default", "max_tokens": 2000, "messages": [USER], "tools": [TOOL]}


def parse(**body):
    return wire_bench.parse(MESSAGES, {"max_tokens": 9000, "messages": [USER], **body})


def said(*blocks, role="user"):
    return {"messages": [{"role": role, "content": list(blocks)}, USER]}


def text(told):
    return {"type": "text", "text": told}


def test_every_wish_for_the_model_is_carried():
    request = parse(
        model="m",
        system="Be brief.",
        tools=[{**TOOL, "type": "custom", "strict": True, "cache_control": {"type": "ephemeral"}}],
        tool_choice={"type": "tool", "name": "bash", "disable_parallel_tool_use": True},
        stop_sequences=["END", "###"],
        top_p=0.5,
        temperature=0.25,
        output_config={"effort": "max"},
        max_tokens=99,
    ).request
    assert request.messages == (Message(Role.SYSTEM, "Be brief."), Message(Role.USER, "go"))
    assert (request.model, request.tool_choice, request.parallel) == ("m", "tool:bash", False)
    assert (request.stop, request.top_p, request.temperature) == (("END", "###"), 0.5, 0.25)
    assert (request.effort, request.max_output_tokens) == ("max", 99)
    assert (request.tools[0].name, request.tools[0].parameters) == ("bash", SCHEMA)


@pytest.mark.parametrize(
    ("body", "effort"),
    [
        ({}, ""),
        ({"thinking": {"type": "disabled"}}, "none"),
        ({"thinking": {"type": "adaptive"}}, "high"),
        ({"thinking": {"type": "adaptive"}, "output_config": {"effort": "low"}}, "low"),
        ({"thinking": {"type": "enabled", "budget_tokens": 1024}}, "low"),
        ({"thinking": {"type": "enabled", "budget_tokens": 4000}}, "medium"),
        ({"thinking": {"type": "enabled", "budget_tokens": 16_000}, "max_tokens": 32_000}, "high"),
    ],
)
def test_wish_for_thinking_becomes_one_word(body, effort):
    assert parse(**body).request.effort == effort


@pytest.mark.parametrize(
    ("thinking", "told"),
    [
        ({}, []),
        ({"thinking": {"type": "disabled"}}, []),
        ({"thinking": THINK}, [CALLED.reasoning]),
        ({"thinking": {**THINK, "display": "omitted"}}, [""]),
    ],
)
def test_thinking_is_told_to_whoever_asked_for_it(thinking, told):
    async def talk(vendor):
        return await vendor.messages.create(**ASK, **thinking)

    answer, _ = with_client(anthropic_client, talk)
    assert [block.thinking for block in answer.content if block.type == "thinking"] == told


@pytest.mark.parametrize("arguments", ['{"command":', "[1]", '{"a": NaN}', "[" * 100_000, "{" * 9 + "\x00"])
def test_arguments_that_are_no_object_survive_the_way_there_and_back(arguments):
    async def talk(vendor):
        first = await vendor.messages.create(**ASK)
        ask = {**ASK, "messages": [USER, {"role": "assistant", "content": first.content}, USER]}
        await vendor.messages.create(**ask)
        return first

    first, table = with_client(anthropic_client, talk, Reply("", (ToolCall("c", "bash", arguments),)))
    assert first.content[0].input == {"INVALID_JSON": arguments}
    assert table.calls[1].request.messages[1].calls == (ToolCall("c", "bash", arguments),)


def test_vendors_tool_runner_works_without_a_thread_at_the_provider():
    from anthropic import beta_async_tool

    @beta_async_tool
    async def bash(command: str) -> str:
        """Run it."""
        return f"ran {command}"

    async def talk(vendor):
        ask = {**ASK, "tools": [bash], "thinking": THINK, "betas": ["some-beta"]}
        return [message async for message in vendor.beta.messages.tool_runner(**ask)]

    answers, table = with_client(anthropic_client, talk, CALLED, SAID)
    assert [answer.stop_reason for answer in answers] == ["tool_use", "end_turn"]
    assert "thread" in table.bodies[0]
    assert [message.text for message in table.calls[1].request.messages] == [
        "go",
        CALLED.text,
        "ran ls",
        "ran pwd",
    ]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (503, "api_error"),
        (529, "overloaded_error"),
    ],
)
def test_each_status_has_the_vendors_kind_of_error(status, kind):
    body = json.loads(MESSAGES.render_error(status, "code", "words"))
    assert body == {"type": "error", "error": {"type": kind, "message": "words"}}


def test_request_that_is_too_long_is_told_in_the_words_that_programs_know():
    body = json.loads(MESSAGES.render_error(400, "context_length_exceeded", "at most 8 tokens"))
    assert body["error"]["message"] == "prompt is too long: at most 8 tokens"
