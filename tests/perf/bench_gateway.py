"""Print what the gateway adds to a model call, and how many calls a process with agent and provider carries.

The journal is a real run's, on disk. The provider answers at once, in this process. Calls of one conversation go to
it directly and through the gateway, in turn.

    python -m tests.perf.bench_gateway [CALLS]
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.support.pins.agents import PATHS, Agent, agent_of, answering, question, stage
from tests.support.pins.door import KEYS
from tests.support.pins.provider import Provider

WARM = 10
AT_ONCE = 32


async def ask(agent: Agent, protocol: str, number: int, stream: bool) -> float:
    """Return the seconds of one call; each asks something else, or the gateway would answer from its record."""
    turn = f"{number} " + "a line that a tool printed\n" * 200
    began = time.perf_counter()
    answer = await agent.post(protocol, question(protocol, turn, stream=stream))
    assert answer.status_code == 200, answer.text
    return time.perf_counter() - began


async def measure(folder: Path, protocol: str, stream: bool, calls: int) -> None:
    """Print medians of both ways in ms, and calls per second through the gateway."""
    import httpx2

    limits = {"calls": 10 * calls}
    async with (
        Provider(answering(protocol)) as provider,
        stage(folder, protocol, answering(protocol), limits=limits) as (_, door),
        agent_of(door) as agent,
        httpx2.AsyncClient(base_url=provider.url) as web,
    ):
        both = Agent(web, ""), agent
        times = [[await ask(one, protocol, n, stream) for one in both] for n in range(calls + WARM)]
        direct, through = (statistics.median(ways) * 1000 for ways in zip(*times[WARM:], strict=True))
        began = time.perf_counter()
        for start in range(0, calls, AT_ONCE):
            numbers = range(-start - AT_ONCE, -start)
            await asyncio.gather(*(ask(agent, protocol, n, stream) for n in numbers))
        rate = (calls + AT_ONCE - 1) // AT_ONCE * AT_ONCE / (time.perf_counter() - began)
    kind = "streamed" if stream else "whole"
    print(f"{protocol:9} {kind:8} direct {direct:6.2f} ms  gateway {through:6.2f} ms  {rate:5.0f} calls/s")


def main() -> None:
    """Print the figures of each protocol."""
    calls = int(sys.argv[1]) if sys.argv[1:] else 200
    os.environ.update(KEYS)
    for protocol in PATHS:
        for stream in (False, True):
            with tempfile.TemporaryDirectory() as name:
                asyncio.run(measure(Path(name) / "run", protocol, stream, calls))


if __name__ == "__main__":
    main()
