"""Records one conversation of each agent with the tests' provider: ``python -m tests.agents.record [AGENT…]``.

The agents run directly against the server, without dgm: what they send there is what dgm's gateway has to bring, and
what comes back there is what they have to get. ``tests/unit/gateway/conversations/NAME.json`` holds it byte for byte.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.agents import packages
from tests.agents.plans import PLANS
from tests.agents.running import CONVERSATIONS, MACHINE, PROVIDER_OF, SUITE, TASK
from tests.support.hosted import PROVIDERS
from tests.support.wire_server import WireApp, WireServer
from tests.support.wire_server.sending import Receive, Scope, Send

KEPT = ("content-type", "accept", "anthropic-version", "anthropic-beta", "openai-beta")
"""Headers that may mean something to a provider; the rest is the client's and the key."""


class Recorder:
    """The server's application, with a copy of all that goes in and out; but for refusals, which dgm words itself."""

    def __init__(self, app: WireApp, exchanges: list[dict[str, Any]]) -> None:
        self._app = app
        self._exchanges = exchanges

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        asked, said = bytearray(), bytearray()
        head: dict[str, Any] = {}

        async def received() -> Any:
            message = await receive()
            asked.extend(message.get("body", b""))
            return message

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                head.update(status=message["status"], headers=_kept(message["headers"]))
            said.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, received, sent)
        if head["status"] != 200:
            return
        query = scope["query_string"].decode()
        self._exchanges.append(
            {
                "method": scope["method"],
                "path": scope["path"] + (f"?{query}" if query else ""),
                "headers": _kept(scope["headers"]),
                "request": asked.decode(),
                "status": head["status"],
                "reply_headers": head["headers"],
                "reply": said.decode(),
            }
        )


def _kept(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    found = {name.decode().lower(): value.decode() for name, value in headers}
    return {name: value for name, value in sorted(found.items()) if name in KEPT}


def record(agent: str) -> list[dict[str, Any]]:
    """One conversation; a call each."""
    exchanges: list[dict[str, Any]] = []
    model = PROVIDERS[PROVIDER_OF[agent]].own_name
    served = WireServer(
        around=lambda app: Recorder(app, exchanges),
        brain=PLANS[agent],
        models=(model,),
        piece=80,
    )
    with tempfile.TemporaryDirectory() as scratch, served as server:
        work = Path(scratch, "work")
        work.mkdir()
        (work / "status.txt").write_text("waiting\n")
        problem = (SUITE / "tasks" / TASK / "problem.md").read_text()
        job = {
            "kind": "solve",
            "problem": problem,
            "workdir": str(work),
            "evidence": None,
            "model": model,
        }
        Path(scratch, "job.json").write_text(json.dumps({**job, "time_limit_s": 120}))
        _run(agent, Path(scratch), server)
        if (work / "status.txt").read_text() != "ready\n":
            raise SystemExit(f"{agent} did not solve its task")
    return exchanges


def _run(agent: str, scratch: Path, server: WireServer) -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(scratch),
        "PYTHONPATH": str(packages.folder(agent)),
        "OPENAI_BASE_URL": server.openai_url,
        "ANTHROPIC_BASE_URL": server.url,
        "OPENAI_API_KEY": server.app.config.key,
        "ANTHROPIC_API_KEY": server.app.config.key,
    }
    words = [sys.executable, str(packages.AGENTS / agent / "agent.py"), str(scratch / "job.json")]
    subprocess.run(words, check=True, cwd=scratch, env=environment, timeout=120, stdin=subprocess.DEVNULL)


def _without_machine(text: str) -> str:
    for told, instead in MACHINE.items():
        text = text.replace(told, instead)
    return text


def main(agents: list[str]) -> int:
    """Records those agents, or all."""
    CONVERSATIONS.mkdir(parents=True, exist_ok=True)
    for agent in agents or PLANS:
        exchanges = record(agent)
        text = json.dumps({"agent": agent, "exchanges": exchanges}, indent=1, ensure_ascii=False)
        (CONVERSATIONS / f"{agent}.json").write_text(_without_machine(text) + "\n")
        print(f"{agent}: {len(exchanges)} calls, {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
