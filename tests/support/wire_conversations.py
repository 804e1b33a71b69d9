"""Clients of both kinds, and the same small conversation in each wire's words."""

import json

from dgm.domain import Usage
from dgm.messages import Reply, Stop, ToolCall
from tests.support.wire_server import Scripted

KEY = "test-key"
GPT = "gpt-test"
CLAUDE = "claude-test"
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
CHAT_TOOL = {"type": "function", "function": {"name": "bash", "description": "runs", "parameters": SCHEMA}}
RESPONSES_TOOL = {"type": "function", "name": "bash", "description": "runs", "parameters": SCHEMA}
CLAUDE_TOOL = {"name": "bash", "description": "runs", "input_schema": SCHEMA}
ARGUMENTS = json.dumps({"command": "printf 'ä\n\"x\"' | wc -c", "again": "0123456789" * 8})
CALLS = (ToolCall("call_1_1", "bash", ARGUMENTS), ToolCall("call_1_2", "bash", json.dumps({"command": "ls"})))
SAYS = "I look at the files first, then I think about what to change. Ünïcode too."
CALLING = Reply(SAYS, CALLS, Stop.TOOL_CALLS, Usage(1, 50, 20))
DONE = Reply("Done.", usage=Usage(1, 90, 3))


def tool_script():
    """Calls two tools, then ends."""
    return Scripted([CALLING, DONE])


def openai_client(server, **more):
    import openai

    given = {"api_key": KEY, "max_retries": 0, "timeout": 60, **more}
    return openai.OpenAI(base_url=server.openai_url, **given)


def anthropic_client(server, **more):
    import anthropic

    given = {"api_key": KEY, "max_retries": 0, "timeout": 60, **more}
    return anthropic.Anthropic(base_url=server.url, **given)


def raw(server, path, body, *, key=KEY, timeout=60.0, headers=None):
    """A plain client's answer."""
    import httpx2

    told = {"authorization": f"Bearer {key}", **(headers or {})}
    if path.endswith("/messages"):
        told |= {"x-api-key": key, "anthropic-version": "2023-06-01"}
    return httpx2.post(server.url + path, json=body, headers=told, timeout=timeout)


def small(path, **more):
    """The body of a small request to an endpoint."""
    if path.endswith("/responses"):
        return {"model": GPT, "input": "hello", **more}
    messages = [{"role": "user", "content": "hello"}]
    if path.endswith("/messages"):
        return {"model": CLAUDE, "messages": messages, "max_tokens": 100, **more}
    return {"model": GPT, "messages": messages, **more}
