"""Measure the head's time for a step and for a model call, on this machine with dgm's own loop, log and gateway.

What the sandboxes of an evaluation take of the head is not measured here, for that needs an engine: ``SANDBOXES_S``
stands for it.
"""

import asyncio
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from dgm.archive.events import ActionStarted, AgentBorn, Recorded, RunStarted, TaskGraded
from dgm.archive.run import Run
from dgm.domain import ActionId, Budget, Evaluate, Expand, TaskId, Usage
from dgm.gateway.journal import RunJournal
from dgm.gateway.lease import CallLimits
from dgm.gateway.ledger import Ledger
from dgm.gateway.server import Gateway
from dgm.messages import Reply, Request
from dgm.models.pricing import Price, TokenRates
from dgm.simulate.families import REPORTED
from dgm.simulate.recorded import open_recording, record
from dgm.simulate.scale.plan import HeadCosts
from dgm.simulate.trial import Trial, perform

SANDBOXES_S = 0.02
"""Seconds of the head for the sandboxes of one evaluation: an upper bound from ``tests/perf/bench_many_nodes.py``,
where head and node share one thread."""
_STEPS = 120
"""Evaluations of the search that is measured."""
_WORKERS = 32
_CALLS, _CLIENTS, _ROUNDS = 160, 8, 3
"""Calls of a round, clients at once, and rounds, of which the quickest counts: other programs only add to it."""
_SAID = "a line of what a tool printed\n" * 100
_ASKED = json.dumps({"model": "instant", "messages": [{"role": "user", "content": _SAID}]}).encode()
_HEADERS = (
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer %s\r\n"
    b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
)


class _Instant:
    """A model that answers at once."""

    name = "instant"

    async def reply(self, request: Request) -> Reply:
        return Reply(request.messages[-1].text[:200], usage=Usage(1, 1_000, 50))

    async def check(self) -> None:
        pass

    async def close(self) -> None:
        pass


def measure_head(policy: str, folder: Path | None = None) -> HeadCosts:
    """Return what the head takes, measured in a few seconds in a folder that is removed afterwards.

    Args:
        policy: its decisions are measured, in the notation of ``contenders``.
        folder: on the disk of the runs; None: that of temporary files.

    Raises:
        UserError: there is no such policy.
    """
    trial = Trial(policy, REPORTED[0], 0, budget=_STEPS, workers=_WORKERS)
    decided = perform(trial)
    decision_s = decided.decision_ms * decided.decisions / (decided.evaluations + decided.expansions) / 1000
    with tempfile.TemporaryDirectory(prefix="dgm-scale-", dir=folder) as scratch:
        took = _measure_steps(Path(scratch, "run"), trial)
        calls = (Path(scratch, f"calls-{number}") for number in range(_ROUNDS))
        call_s = min(asyncio.run(_measure_calls(each)) for each in calls)
    evaluation_s, child_s = took[Evaluate], took[Expand]
    return HeadCosts(decision_s, max(0.0, evaluation_s - decision_s), child_s, call_s, SANDBOXES_S)


def _measure_steps(folder: Path, trial: Trial) -> Mapping[type, float]:
    """Return the median seconds of the loop for an evaluation and for a child, with log and repository on disk.

    The time before each event is what the loop did for it: it decides, keeps a child's source, and records.
    """
    took: dict[tuple[type, bool], list[float]] = defaultdict(list)
    with open_recording(folder, trial) as run:
        last = time.perf_counter()

        def note(recorded: Recorded) -> None:
            nonlocal last
            now = time.perf_counter()
            match recorded.event:
                case ActionStarted(action=what):
                    took[type(what), True].append(now - last)
                case TaskGraded():
                    took[Evaluate, False].append(now - last)
                case AgentBorn():
                    took[Expand, False].append(now - last)
            last = now

        record(run, trial, note)
    # A policy may make no child at all.
    return {
        kind: sum(median(took[kind, begins] or [0.0]) for begins in (True, False))
        for kind in (Evaluate, Expand)
    }


async def _measure_calls(folder: Path) -> float:
    """Return the seconds of a model call through a gateway with a journal on disk; the client's part is in it."""
    model = _Instant()
    with ExitStack() as opened:
        run = opened.enter_context(Run.create(folder, {}))
        run.append(RunStarted(Budget(usd=1e9), (TaskId("task"),)))
        price = {model.name: Price(TokenRates(1.0, 0.1, 1.0, 10.0))}
        ledger = Ledger(price, lambda: run.tree.spend, lambda: run.tree.budget)
        # A socket's path has a small maximum length, which the folder of the runs may exceed.
        sockets = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="dgm-scale-", dir="/tmp")))
        limits = CallLimits(calls=10**9, tokens=10**15)
        async with Gateway(sockets, RunJournal(run), {"solve": model}, ledger, limits) as gateway:
            tokens = [
                opened.enter_context(gateway.lend(ActionId(number + 1), "solve")).token
                for number in range(_CLIENTS)
            ]
            began = time.perf_counter()
            socket = gateway.folder / gateway.socket_name
            await asyncio.gather(*(_call(socket, token, _CALLS // _CLIENTS) for token in tokens))
            return (time.perf_counter() - began) / _CALLS


async def _call(socket: Path, token: str, calls: int) -> None:
    """Ask the model so often, one call after the other."""
    reader, writer = await asyncio.open_unix_connection(socket)
    try:
        for _ in range(calls):
            writer.write(_HEADERS % (token.encode(), len(_ASKED)) + _ASKED)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200"), head
            length = next(
                int(line.partition(b":")[2])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length")
            )
            await reader.readexactly(length)
    finally:
        writer.close()
