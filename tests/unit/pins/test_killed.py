"""dgm is killed at the moments at which a call can be lost or paid twice; the provider's count decides."""

import asyncio
import multiprocessing
from contextlib import asynccontextmanager, suppress

import httpx2
import pytest

from tests.support.pins.agents import PATHS, agent_at, question, records, run
from tests.support.pins.door import make_settings, read_spend, serve
from tests.support.pins.provider import Provider

pytestmark = pytest.mark.starts_processes

BILLED = 50 + 20
FORK = multiprocessing.get_context("fork")
"""A new process would make all imports again."""


@asynccontextmanager
async def started(folder, settings):
    """Serve in a process of its own; yields the agent's side and what kills it."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=serve, args=(folder, settings, theirs), daemon=True)
    process.start()

    def kill():
        process.kill()
        process.join()

    try:
        async with agent_at(await asyncio.to_thread(ours.recv)) as agent:
            yield agent, kill
    finally:
        kill()


@pytest.mark.parametrize(
    ("protocol", "end"), [("chat", b"[DONE]"), ("messages", b"}")], ids=["streamed", "whole"]
)
def test_nothing_is_paid_twice_or_lost(tmp_path, protocol, end):
    """It dies when the provider has the whole request, when a half was answered, when the agent has the last byte."""
    folder, moment, kill = tmp_path / "run", "", None
    body = question(protocol, stream=protocol == "chat")

    async def play(asked):
        content = b"".join(records(protocol, asked.body))
        half = len(content) // 2
        if moment == "asked":
            kill()
        asked.start("text/event-stream" if asked.body.get("stream") else "application/json")
        await asked.write(content[:half])
        if moment == "half":
            await asyncio.sleep(0.05)
            kill()
        await asked.write(content[half:])
        await asked.write(b"")

    async def ask(agent):
        came = b""
        with suppress(httpx2.HTTPError):
            async with agent.web.stream("POST", PATHS[protocol], json=body) as answer:
                async for piece in answer.aiter_raw():
                    came += piece
                    if moment == "answered" and end in came[-40:]:
                        kill()
        return came

    async def scenario():
        nonlocal moment, kill
        seen = []
        async with Provider(play) as provider:
            for moment in ("asked", "half", "answered", ""):  # noqa: B007  (read above)
                async with started(folder, make_settings(protocol, provider.url)) as (agent, kill):
                    came = await ask(agent)
                seen.append((came, len(provider.asked), read_spend(folder).tokens))
        return seen

    asked, half, answered, again = run(scenario())
    assert [requests for _, requests, _ in (asked, half, answered, again)] == [1, 2, 3, 3]
    assert end not in half[0][-40:]
    assert end in answered[0][-40:]
    assert again[0] == answered[0]
    # What a dead process had begun is counted when the run is opened again.
    assert half[2] >= BILLED
    assert again[2] == answered[2] >= 3 * BILLED
