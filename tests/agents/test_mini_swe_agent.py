"""mini-swe-agent, through LiteLLM, on Chat Completions."""

import pytest

from tests.agents.running import arrived, recorded, solve

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1500)]
AGENT = "mini_swe_agent"


def test_mini_swe_agent_works_as_without_dgm(sandbox, tmp_path):
    calls = solve(AGENT, sandbox, tmp_path)
    assert {call.path for call in calls} == {"/v1/chat/completions"}
    assert [call.body["tools"][0]["function"]["name"] for call in calls] == ["bash"] * 3
    assert [len(call.body["messages"]) for call in calls] == [2, 4, 6]
    assert arrived(calls) == recorded(AGENT)
