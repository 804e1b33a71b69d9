"""Opens dgm's gateway on a real run, as its worker does; the only part of the pins that knows dgm's modules."""

import asyncio
import json
import sqlite3
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from dgm import assemble
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import AgentId, Evaluate, TaskId, Usage
from dgm.replay.again import open_replayer
from dgm.search.loop import GatewayAvailability
from tests.support.runs.builder import RunBuilder

AGENT = Path(__file__).parents[2] / "e2e" / "agents" / "streams"
KEY = "sk-proj-Qz7XvT4nWb2Lm9RkYc3HsJd8Fg6Pa1Ue5"
KEYS = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_COMPATIBLE_API_KEY"), KEY)
ACTIONS = 8
"""Evaluations that are under way in a new run, from 1."""
USD = {"input": 1.0, "output": 10.0}
"""For a million tokens."""
MODELS = {
    "chat": ("openai-compatible", "openai-compatible/local-coder"),
    "responses": ("openai", "openai/gpt-6.2-sol"),
    "messages": ("anthropic", "anthropic/claude-haiku-5-5"),
}
"""Settings section and model, by the protocol that the provider speaks."""


def make_settings(protocol: str, url: str, *, usd: Mapping[str, float] = USD, **more: Any) -> dict[str, Any]:
    """Return the settings of a run on the test provider at ``url``; ``more``: further sections."""
    section, model = MODELS[protocol]
    base = url if protocol == "messages" else f"{url}/v1"
    hosted = {"base_url": base, "backoff_s": 0.01, "tries": 3, "timeout_s": 20.0}
    if protocol == "responses":
        hosted["api"] = protocol  # Else agents that speak Chat would be passed through.
    return {
        "model": model,
        "models": {"prices": {model: dict(usd)}},
        "providers": {section: hosted},
        "seed_agent": str(AGENT),
        **more,
    }


class _Engine:
    name = "none"

    async def reap(self, labels: Mapping[str, str]) -> None:
        pass


class _Benchmark:
    name, version = "none", "1"

    def tasks(self, _split: object) -> list[Any]:
        return []


PARTS = assemble.RunParts(_Engine(), _Benchmark())  # type: ignore[arg-type]


@dataclass(frozen=True)
class Door:
    """An open gateway."""

    gateway: Any

    @contextmanager
    def lend(self, action: int = 1) -> Iterator[tuple[str, str]]:
        """Lend the model to an agent; yields the socket and the agent's token."""
        with self.gateway.lend(action, "solve") as lease:
            yield str(self.gateway.folder / self.gateway.socket_name), lease.token

    @property
    def budget_spent(self) -> bool:
        """Whether the search would end because no further call can be afforded."""
        return bool(GatewayAvailability(self.gateway).spent)


@asynccontextmanager
async def open_door(folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[Door]:
    """Open the gateway of a new run in ``folder``, or of the one that is there."""
    checked = Settings(**settings)
    if folder.exists():
        run = Run.open(folder, write=True)
        assemble.record_resume(run, checked.budget.budget(), PARTS)
    else:
        run = assemble.create(folder, checked, PARTS)
        for _ in range(ACTIONS):
            RunBuilder(run).begin(Evaluate(AgentId(0), TaskId("t")))
    with run:
        async with assemble.open_worker(run, checked, PARTS) as worker:
            yield Door(worker.session.gateway)


@asynccontextmanager
async def open_replay(folder: Path, settings: Mapping[str, Any]) -> AsyncIterator[Door]:
    """Open the gateway of a replay, which has the run's record and nothing else."""
    checked = Settings(**settings)
    with Run.open(folder) as run:
        async with open_replayer(run, checked, PARTS) as replayer:
            yield Door(replayer.worker.session.gateway)


def serve(folder: Path, settings: Mapping[str, Any], pipe: Connection) -> None:
    """Open the gateway in this process, send what it lends to an agent into the pipe, and serve for ever."""

    async def forever() -> None:
        async with open_door(folder, settings) as door:
            with door.lend() as lent:
                pipe.send(lent)
                await asyncio.Event().wait()

    asyncio.run(forever())


def read_spend(folder: Path) -> Usage:
    """Return what a run counts; what a dead process left open is in it once the run is opened to go on."""
    with Run.open(folder) as run:
        return run.tree.spend


def read_notes(folder: Path) -> list[tuple[int, str]]:
    """Return status and message of what was refused, or left out of requests (status 200), in order."""
    query = "select body from events where kind = 'call_refused' order by seq"
    bodies = [json.loads(body) for (body,) in _rows(folder, query)]
    return [(body["status"], body["message"]) for body in bodies]


def read_contents(folder: Path) -> Iterator[bytes]:
    """Yield all that the files of a run hold, unpacked."""
    for path in filter(Path.is_file, folder.rglob("*")):
        yield from _unpack(path.read_bytes())
    for (table,) in _rows(folder, "select name from sqlite_master where type = 'table'"):
        for row in _rows(folder, f'select * from "{table}"'):
            for value in row:
                yield from _unpack(value if isinstance(value, bytes) else str(value).encode())


def _rows(folder: Path, query: str) -> list[tuple[Any, ...]]:
    with sqlite3.connect(f"file:{folder / 'run.db'}?mode=ro", uri=True) as db:
        return db.execute(query).fetchall()


def _unpack(data: bytes) -> Iterator[bytes]:
    yield data
    try:
        yield zlib.decompress(data)
    except zlib.error:
        pass
