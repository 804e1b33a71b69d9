"""What the calls of a dry run show of an agent's calls in a search."""

import asyncio

from dgm.domain import ActionId
from dgm.gateway.lease import DRY_RUN
from dgm.messages import WireProtocol
from dgm.models.builtin import DryRun, ScriptedTalk
from tests.support.gateway.bench import client, gateway

QUESTION = {"role": "user", "content": "x" * 4_000}
SCHEMA = {"format": {"type": "json_schema", "name": "answer", "schema": {"type": "object"}}}


def rehearse(folder, *bodies):
    """Send requests in a dry run by the Responses protocol; return what they show, and their status codes."""

    async def scenario():
        async with gateway(folder / "g", DryRun("openai/gpt-6.2-sol")) as opened:
            with opened.lend(ActionId(1), DRY_RUN) as lease:
                async with client(opened, lease.token) as http:
                    statuses = [(await http.post("/responses", json=body)).status_code for body in bodies]
                return lease.rehearsed.summarise(lease.refused, lease.left_out), statuses

    return asyncio.run(scenario())


def test_the_calls_are_kept_as_they_pass_and_what_is_left_out_is_named(tmp_path):
    asked = {"model": "gpt-6.2-sol", "input": "hello", "client_metadata": {"a": "b"}}
    calls, _ = rehearse(tmp_path, {**asked, "mood": 1}, asked)
    assert (calls.left_out, calls.lost_in_translation) == (("mood",), ("client_metadata",))
    (one, other) = calls.requests
    assert one == other
    assert one.body.items() >= asked.items()


def test_what_no_translation_carries_is_told_though_the_dry_model_answers(tmp_path):
    calls, statuses = rehearse(
        tmp_path,
        {"model": "gpt-6.2-sol", "input": "hello"},
        {"model": "gpt-6.2-mini", "input": [QUESTION], "text": SCHEMA},
        {"model": "claude-opus-5", "input": "hello"},
    )
    assert statuses == [200, 200, 404]
    assert "text.format" in calls.untranslatable[WireProtocol.RESPONSES]
    assert calls.other_models == ("gpt-6.2-mini",)
    assert list(calls.refusals) == ["model_not_found"]


def test_tools_in_the_input_are_offered_to_the_dry_model(tmp_path):
    tools = [{"type": "namespace", "name": "functions", "tools": [{"type": "custom", "name": "exec"}]}]
    items = [{"type": "additional_tools", "role": "developer", "tools": tools}, QUESTION]

    async def ask():
        async with gateway(tmp_path / "g", ScriptedTalk("openai/gpt-6.2-sol")) as opened:
            with opened.lend(ActionId(1), DRY_RUN) as lease:
                async with client(opened, lease.token) as http:
                    answer = await http.post("/responses", json={"model": "gpt-6.2-sol", "input": items})
                return answer.json()["output"]

    (call,) = asyncio.run(ask())
    assert (call["type"], call["namespace"], call["name"]) == ("custom_tool_call", "functions", "exec")
    assert "exec_command" in call["input"]
