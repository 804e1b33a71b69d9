"""Recorded conversations of real agents pass the gateway: nothing is changed on the way there or back."""

import asyncio
import json
from pathlib import Path
from random import Random

import httpx2
import pytest

from dgm.config import ProviderSettings
from dgm.gateway.server import LendingRules
from dgm.models.hosted import HostedModel, Retries
from dgm.models.throttle import Throttle
from dgm.wires import WIRES
from tests.support.gateway.bench import gateway, talking
from tests.support.models.connection_script import Pieces, Script

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parent / "conversations"
AGENTS = sorted(path.stem for path in FOLDER.glob("*.json"))
OURS = (
    "model",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "store",
    "include",
    "stream_options",
)
"""What the gateway sets by itself."""
PASSED_HEADERS = ("anthropic-version", "anthropic-beta")
RULES = LendingRules(any_name=True)
PIECE = 57
"""Bytes at a time, so that events are cut anywhere."""


def load(agent):
    return json.loads((FOLDER / f"{agent}.json").read_text())["exchanges"]


def replying(exchange):
    content = exchange["reply"].encode()
    pieces = [content[at : at + PIECE] for at in range(0, len(content), PIECE)]

    async def step(_body):
        return httpx2.Response(exchange["status"], headers=exchange["reply_headers"], stream=Pieces(pieces))

    return step


def hosted(script, asked):
    """The provider's own model, for which an agent asks by the name of a sibling."""
    throttle = Throttle(ProviderSettings(concurrency=1))
    retries = Retries(1, 0.0, asyncio.sleep, rng=Random(1))
    return HostedModel(f"openai-compatible/{asked}-own", f"{asked}-own", script, throttle, retries)


def protocol_of(exchange):
    path = exchange["path"].partition("?")[0].removeprefix("/v1")
    return next(protocol for protocol, wire in WIRES.items() if wire.path == path)


@pytest.mark.parametrize("agent", AGENTS)
def test_conversation_arrives_and_comes_back_as_it_was(tmp_path, agent):
    exchanges = load(agent)
    protocol, name = protocol_of(exchanges[0]), json.loads(exchanges[0]["request"])["model"]

    async def scenario():
        script = Script(*(replying(one) for one in exchanges), protocol=protocol)
        told = []
        async with talking(gateway(tmp_path / "g", hosted(script, name), rules=RULES)) as (
            _opened,
            _lease,
            http,
        ):
            for one in exchanges:
                path = one["path"].removeprefix("/v1")
                answer = await http.post(path, content=one["request"], headers=one["headers"])
                told.append((answer.status_code, answer.headers["content-type"], answer.content))
        return script, told

    script, told = asyncio.run(asyncio.wait_for(scenario(), 60))
    for one, body, headers, answer in zip(exchanges, script.bodies, script.headers, told, strict=True):
        sent = json.loads(one["request"])
        assert body["model"] == f"{name}-own"
        assert WIRES[protocol].output_limit(body) is not None
        assert {name: value for name, value in body.items() if name not in OURS} == {
            name: value for name, value in sent.items() if name not in OURS
        }
        # What is passed on is in the order in which the agent wrote it.
        assert [name for name in body if name in sent] == list(sent)
        assert headers == {name: one["headers"][name] for name in PASSED_HEADERS if name in one["headers"]}
        status, kind, content = answer
        assert (status, content) == (one["status"], one["reply"].encode())
        assert kind.partition(";")[0] == one["reply_headers"]["content-type"].partition(";")[0]
