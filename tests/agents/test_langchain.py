"""LangChain's structured output, in both of its ways, on Chat Completions and on Messages."""

import pytest

from tests.agents.running import arrived, recorded, solve

pytestmark = [pytest.mark.agents, pytest.mark.timeout(1500)]


def test_structured_output_of_chat_openai_works_as_without_dgm(sandbox, tmp_path):
    schema, function = solve("langchain_openai", sandbox, tmp_path)
    assert schema.path == function.path == "/v1/chat/completions"
    asked = schema.body["response_format"]
    assert (asked["type"], asked["json_schema"]["name"], asked["json_schema"]["strict"]) == (
        "json_schema",
        "Place",
        True,
    )
    assert function.body["tool_choice"] == {"type": "function", "function": {"name": "Edit"}}
    assert function.body["parallel_tool_calls"] is False
    assert arrived([schema, function]) == recorded("langchain_openai")


def test_structured_output_of_chat_anthropic_works_as_without_dgm(sandbox, tmp_path):
    schema, function = solve("langchain_anthropic", sandbox, tmp_path)
    assert schema.path == function.path == "/v1/messages"
    assert schema.body["output_config"]["format"]["type"] == "json_schema"
    assert function.body["tool_choice"] == {"type": "tool", "name": "Edit"}
    assert arrived([schema, function]) == recorded("langchain_anthropic")
