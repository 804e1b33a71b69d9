"""openai-agents, streamed, on Responses: tools of four types and a result with a schema."""

import pytest

from tests.agents.running import arrived, recorded, solve

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1500)]
AGENT = "openai_agents"


def test_openai_agents_work_as_without_dgm(sandbox, tmp_path):
    calls = solve(AGENT, sandbox, tmp_path)
    assert {call.path for call in calls} == {"/v1/responses"}
    for call in calls:
        types = [tool["type"] for tool in call.body["tools"]]
        assert types == ["function", "shell", "custom", "apply_patch"]
        assert call.body["text"]["format"]["type"] == "json_schema"
        assert call.body["text"]["format"]["strict"] is True
    last = [item.get("type") for item in calls[-1].body["input"]]
    for kind in ("function_call", "shell_call", "custom_tool_call", "apply_patch_call"):
        result = (
            f"{kind.removesuffix('_tool_call')}_tool_call_output" if "custom" in kind else f"{kind}_output"
        )
        assert {kind, result} <= set(last)
    assert arrived(calls) == recorded(AGENT)
