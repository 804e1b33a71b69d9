"""Lets dgm evaluate an agent of a vendor's package on one small task, and tells what the provider was asked."""

import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agents import packages
from tests.agents.plans import PLANS
from tests.support.hosted import KEY, PROVIDERS, Provider, events
from tests.support.program import without_keys
from tests.support.wire_server import Record, WireServer

TASK = "say-that-it-is-ready"
SUITE = Path(__file__).parents[1] / "e2e" / "suites" / "word"
CONVERSATIONS = Path(__file__).parents[1] / "unit" / "gateway" / "conversations"
OUR_KEYS = {
    *("model", "max_tokens", "max_completion_tokens", "max_output_tokens"),
    *("stream", "stream_options", "store", "include"),
}
"""What the gateway may change or add: the model's name, the output limit, what it learns the usage by, and that nothing
is kept at the provider (so that reasoning has to come along)."""
PROVIDER_OF = {
    "anthropic_tools": "anthropic",
    "langchain_anthropic": "anthropic",
    "langchain_openai": "compatible",
    "mini_swe_agent": "openai-chat",
    "openai_agents": "openai",
}
"""Whose model each agent works with. LangChain asks OpenAI's newer models by Responses, others by Chat."""
PASSED = ("anthropic-version", "anthropic-beta")
MACHINE = {platform.release(): "6.1.0", platform.version(): "#1 SMP", platform.machine(): "x86_64"}
"""What agents tell of the machine, and what is recorded in its place."""
IDS = re.compile(r"\b(resp|msg|fc|sh|ctc|apc)_[0-9a-f]{12,}")
"""They follow from the bytes of a request, so that another model's name makes others."""

MCP_SERVER = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    method = asked["method"]
    if "id" in asked:
        version = asked.get("params", {}).get("protocolVersion")
        server = {"protocolVersion": version, "capabilities": {"tools": {}}}
        server["serverInfo"] = {"name": "notes", "version": "1"}
        tool = {"name": "recall", "description": "Recall a note.", "inputSchema": {"type": "object", "properties": {}}}
        answers = {"initialize": server, "tools/list": {"tools": [tool]}}
        answer = answers.get(method, {"content": [{"type": "text", "text": "NOTE-OF-THE-SERVER"}]})
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""
"""A program of tools, ``notes``, with one that recalls a note."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A call as the provider got it, or as it was recorded without dgm."""

    path: str
    body: Mapping[str, Any]
    """Without what is the gateway's to change."""
    headers: Mapping[str, str]


def template_environment(provider: Provider, archive: Path) -> dict[str, str]:
    """The variables of ``dgm`` with a template: its packages are kept in a cache, and its runs in ``archive``."""
    return {
        **without_keys(os.environ),
        "XDG_CACHE_HOME": str(packages.CACHE / "templates"),
        provider.key_env: KEY,
        "DGM_ARCHIVE": str(archive),
    }


def run_dgm(environment: Mapping[str, str], *words: object, module: str = "dgm") -> str:
    """Run ``dgm``, which must succeed; return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, words)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def solve(agent: str, sandbox: str, archive: Path) -> list[Record]:
    """Evaluates the agent; returns its calls as they came to the provider, once the task is resolved."""
    chosen = PROVIDERS[PROVIDER_OF[agent]]
    with WireServer(key=KEY, models=(chosen.own_name,), brain=PLANS[agent]) as server:
        words = ["evaluate", str(packages.AGENTS / agent), "--benchmark", str(SUITE)]
        words += [
            "--split",
            "search",
            "--set",
            f"sandbox={sandbox}",
            "--workers",
            "1",
            *chosen.words(server.url),
            "--json",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "dgm", *words],
            env={
                **without_keys(os.environ),
                **packages.environment(agent),
                chosen.key_env: KEY,
                "DGM_ARCHIVE": str(archive),
            },
            capture_output=True,
            text=True,
            timeout=1200,
            check=False,
        )
        calls = [record for record in server.requests if _own(record)]
        told = [f"{record.path} {record.status} {record.error}" for record in server.requests]
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}\n{told}"
    said = json.loads(done.stdout)
    (found,) = said["agents"]
    told += [str(body) for body in events(Path(said["folder"]), "call_refused")]
    assert found["resolved"] == [TASK], f"{found}\n{told}"
    return calls


def _own(record: Record) -> bool:
    """Whether an agent asked: dgm's own questions know nothing of the task."""
    return record.method == "POST" and record.status == 200 and "status.txt" in json.dumps(record.body)


def arrived(calls: Sequence[Record]) -> list[Seen]:
    """What the provider got."""
    return [_seen(call.path, call.body, call.headers) for call in calls]


def recorded(agent: str) -> list[Seen]:
    """What the agent sent when it spoke to the provider itself."""
    exchanges = json.loads((CONVERSATIONS / f"{agent}.json").read_text())["exchanges"]
    return [_seen(each["path"], json.loads(each["request"]), each["headers"]) for each in exchanges]


def _seen(path: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Seen:
    text = IDS.sub(r"\1_", json.dumps({key: value for key, value in body.items() if key not in OUR_KEYS}))
    for told, instead in MACHINE.items():
        text = text.replace(told, instead)
    passed = {name: headers[name] for name in PASSED if name in headers}
    return Seen(path.partition("?")[0], json.loads(text), passed)
