"""The anthropic package's tool runner, streamed, on Messages: the vendor's own tools and cache breakpoints."""

import pytest

from tests.agents.running import arrived, recorded, solve

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1500)]
AGENT = "anthropic_tools"
BETAS = "fine-grained-tool-streaming-2025-05-14,interleaved-thinking-2025-05-14"
MARK = {"type": "ephemeral"}


def test_the_tool_runner_works_as_without_dgm(sandbox, tmp_path):
    calls = solve(AGENT, sandbox, tmp_path)
    assert {call.path for call in calls} == {"/v1/messages"}
    for call in calls:
        assert call.body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
        bash, editor = call.body["tools"]
        assert bash == {"type": "bash_20250124", "name": "bash"}
        assert (editor["type"], editor["cache_control"]) == ("text_editor_20250728", MARK)
        assert call.headers["anthropic-beta"] == BETAS
        # Conversations that the provider keeps are not offered; the runner is told so, and does without.
        assert "thread" not in call.body
    assert calls[0].body["messages"][-1]["content"][-1]["cache_control"] == MARK
    assert calls[-1].body["messages"][-1]["content"][-1]["content"][-1]["cache_control"] == MARK
    assert arrived(calls) == recorded(AGENT)
