"""The agent's side of the pins: raw HTTP or a vendor's client, and one conversation in three protocols."""

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from dgm.domain import Usage
from dgm.messages import Reply, Stop, ToolCall
from tests.support.pins.door import Door, make_settings, open_door
from tests.support.pins.provider import Play, Provider, play_either
from tests.support.wire_server import WIRES, chunks_of

Result = TypeVar("Result")
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
FUNCTION = {"name": "bash", "description": "runs", "parameters": SCHEMA}
TOOLS = {
    "chat": {"type": "function", "function": FUNCTION},
    "responses": {"type": "function", **FUNCTION},
    "messages": {"name": "bash", "description": "runs", "input_schema": SCHEMA},
}
ARGUMENTS = json.dumps({"command": "printf 'ä\n\"x\"' | wc -c", "again": "0123456789" * 8})
CALLS = (ToolCall("call_1_1", "bash", ARGUMENTS), ToolCall("call_1_2", "bash", json.dumps({"command": "ls"})))
SAYS = "I look at the files first, then I think about what to change. Ünïcode too."
CALLING = Reply(SAYS, CALLS, Stop.TOOL_CALLS, Usage(1, 50, 20))
DONE = Reply("Done.", usage=Usage(1, 90, 3))
LIMITS = {"chat": "max_completion_tokens", "responses": "max_output_tokens", "messages": "max_tokens"}
"""Names of the output limit."""
STOPS = {
    "chat": {"stop": "end", "tool_calls": "calls", "length": "length"},
    "responses": {"completed": "end", "incomplete": "length"},
    "messages": {"end_turn": "end", "tool_use": "calls", "max_tokens": "length"},
}
SYSTEM, TASK, GO_ON = "You solve tasks.", "List the files.", "Go on."


@dataclass(frozen=True)
class Answer:
    """What a vendor's client makes of an answer."""

    text: str
    calls: Sequence[tuple[str, str, Any]]
    """Id, name and arguments."""
    stop: str
    tokens: tuple[int, int]
    turn: Any
    """What the client sends back of it."""


def question(protocol: str, text: str = TASK, *, stream: bool = False, **more: Any) -> dict[str, Any]:
    """Return a request with a tool."""
    asked: dict[str, Any] = {"model": "default", "tools": [TOOLS[protocol]], LIMITS[protocol]: 1000}
    turn = {"role": "user", "content": text}
    match protocol:
        case "chat":
            asked["messages"] = [{"role": "system", "content": SYSTEM}, turn]
            if stream:
                asked["stream_options"] = {"include_usage": True}
        case "responses":
            asked |= {"instructions": SYSTEM, "input": [turn], "store": False}
            asked["include"] = ["reasoning.encrypted_content"]
        case _:
            asked |= {"system": SYSTEM, "messages": [turn]}
    return {**asked, **({"stream": True} if stream else {}), **more}


def reply_to(protocol: str, body: Mapping[str, Any], answer: Answer, *results: str) -> dict[str, Any]:
    """Return the request that continues a conversation: with the results of the answer's calls, or a user's word."""
    pairs = list(zip([call_id for call_id, _, _ in answer.calls], results, strict=True))
    word = [] if pairs else [{"role": "user", "content": GO_ON}]
    match protocol:
        case "chat":
            done = [{"role": "tool", "tool_call_id": name, "content": text} for name, text in pairs]
            return {**body, "messages": [*body["messages"], answer.turn, *done, *word]}
        case "responses":
            done = [{"type": "function_call_output", "call_id": name, "output": text} for name, text in pairs]
            return {**body, "input": [*body["input"], *answer.turn, *done, *word]}
        case _:
            done = [{"type": "tool_result", "tool_use_id": name, "content": text} for name, text in pairs]
            turns = [{"role": "assistant", "content": answer.turn}, *word]
            if pairs:
                turns.append({"role": "user", "content": done})
            return {**body, "messages": [*body["messages"], *turns]}


@dataclass(frozen=True)
class Agent:
    """An agent with the socket and token that it was lent."""

    web: httpx2.AsyncClient
    token: str

    async def post(
        self, protocol: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """Return the answer to one raw request, read to its end."""
        return await self.web.post(PATHS[protocol], json=body, headers=headers)

    async def read(self, protocol: str, body: Mapping[str, Any]) -> Answer:
        """Return the answer that the vendor's client reads, accumulated by itself where it is a stream."""
        streamed = body.get("stream")
        body = {key: value for key, value in body.items() if key != "stream"}
        if protocol == "messages":
            import anthropic

            messages = anthropic.AsyncAnthropic(**self._client("http://gateway")).messages
            if not streamed:
                return _of_messages(await messages.create(**body))
            async with messages.stream(**body) as events:
                return _of_messages(await events.get_final_message())
        import openai

        client = openai.AsyncOpenAI(**self._client("http://gateway/v1"))
        api: Any = client.chat.completions if protocol == "chat" else client.responses
        if not streamed:
            answer = await api.create(**body)
        else:
            async with api.stream(**body) as events:
                get = "get_final_completion" if protocol == "chat" else "get_final_response"
                answer = await getattr(events, get)()
        return _of_chat(answer) if protocol == "chat" else _of_responses(answer)

    def _client(self, url: str) -> dict[str, Any]:
        return {"base_url": url, "api_key": self.token, "http_client": self.web, "max_retries": 0}


@asynccontextmanager
async def agent_at(lent: tuple[str, str]) -> AsyncIterator[Agent]:
    """Open the agent's side of a socket and a token."""
    socket, token = lent
    transport = httpx2.AsyncHTTPTransport(uds=socket)
    headers = {"authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://gateway", headers=headers, timeout=60
    ) as web:
        yield Agent(web, token)


@asynccontextmanager
async def agent_of(door: Door, action: int = 1) -> AsyncIterator[Agent]:
    """Lend an action's model to an agent."""
    with door.lend(action) as lent:
        async with agent_at(lent) as agent:
            yield agent


@asynccontextmanager
async def stage(folder: Path, protocol: str, play: Play, **more: Any) -> AsyncIterator[tuple[Provider, Door]]:
    """Open a provider and a gateway before it; ``more``: settings."""
    async with Provider(play) as provider:
        settings = make_settings(protocol, provider.url, **more)
        async with open_door(folder, settings) as door:
            yield provider, door


def run(scenario: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a scenario, which must end."""
    return asyncio.run(asyncio.wait_for(scenario, 300))


def _of_chat(answer: Any) -> Answer:
    choice, usage = answer.choices[0], answer.usage
    calls = [
        (one.id, one.function.name, json.loads(one.function.arguments))
        for one in choice.message.tool_calls or ()
    ]
    turn = choice.message.model_dump(exclude_none=True, exclude={"parsed"})
    for call in turn.get("tool_calls", ()):
        call["function"].pop("parsed_arguments", None)
        call.pop("index", None)
    stop = STOPS["chat"][choice.finish_reason]
    tokens = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
    return Answer(choice.message.content or "", calls, stop, tokens, turn)


def _of_responses(answer: Any) -> Answer:
    calls = [
        (item.call_id, item.name, json.loads(item.arguments))
        for item in answer.output
        if item.type == "function_call"
    ]
    stop = "calls" if calls else STOPS["responses"][answer.status]
    tokens = answer.usage.input_tokens, answer.usage.output_tokens
    turn = [item.model_dump(exclude_none=True) for item in answer.output]
    for item in turn:
        item.pop("parsed_arguments", None)
        for part in item.get("content", ()):
            part.pop("parsed", None)
    return Answer(answer.output_text, calls, stop, tokens, turn)


def _of_messages(answer: Any) -> Answer:
    calls = [(block.id, block.name, block.input) for block in answer.content if block.type == "tool_use"]
    text = "".join(block.text for block in answer.content if block.type == "text")
    turn = [
        block.model_dump(exclude_none=True, exclude={"parsed_output", "caller"}) for block in answer.content
    ]
    tokens = answer.usage.input_tokens, answer.usage.output_tokens
    return Answer(text, calls, STOPS["messages"][answer.stop_reason], tokens, turn)


# The provider's side in the words of each protocol


def records(protocol: str, body: Mapping[str, Any]) -> list[bytes]:
    """Return the events of an answer to a request that arrived at the provider; one JSON if it wants no stream."""
    wire = WIRES[PATHS[protocol]]
    return chunks_of(wire, wire.parse(body, "0" * 64), CALLING, 24)


def answering(protocol: str) -> Play:
    """Return a play that gives the same answer to every request, streamed or whole as it asks."""
    return lambda asked: play_either(asked, records(protocol, asked.body))
