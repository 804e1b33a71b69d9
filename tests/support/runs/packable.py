"""Runs made by code, small but with everything that a pack has to carry."""

from functools import partial
from pathlib import Path

from dgm.archive.events import CallBooked, CallStarted
from dgm.archive.run import Run
from dgm.domain import (
    SEED,
    Budget,
    Cost,
    Entry,
    Evaluate,
    TaskId,
    Usage,
    Verdict,
)
from dgm.exports.scrub import LocalIdentity
from dgm.messages import Message, Reply, Request, Role, WireProtocol, WireReply, WireRequest
from tests.support.runs.builder import RunBuilder, create_run

KEY = "0123-not-a-real-key-4567"
ALICE = LocalIdentity("/home/alice", "alice", "atlas-7", "/home/alice/work", (KEY,))


def begin(folder: Path, settings: dict | None = None, source: bytes = b"[agent]\n") -> Run:
    """A run with a seed, open to write."""
    config = {"id": "abc", "name": folder.name, "settings": {"benchmark": "starter", **(settings or {})}}
    run = create_run(folder, config, Budget(evaluations=5), (TaskId("a"), TaskId("b")))
    files = {"agent.toml": Entry(source), "agent/loop.py": Entry(b"loop\n")}
    RunBuilder(run).bear(files, rationale="the seed")
    return run


def child(run: Run, source: bytes = b"loop\nbetter\n") -> None:
    """One more agent, a child of the seed."""
    files = {"agent.toml": Entry(b"[agent]\n"), "agent/loop.py": Entry(source)}
    RunBuilder(run).bear(files, (SEED,), operator="op", rationale="longer")


def evaluate(run: Run, said: str, task: str = "a", calls: int = 3) -> None:
    """An evaluation whose conversation, log and reason hold ``said``; each request builds on the one before."""
    made = RunBuilder(run)
    action = made.begin(Evaluate(SEED, TaskId(task)))
    messages = [Message(Role.USER, f"mend {task}: {said}")]
    for number in range(calls):
        request = Request(tuple(messages), (), "offline")
        made.record_exchange(action, number, request, Reply(f"{number}: {said}"), usage=Usage(1, 2, 3))
        messages += [Message(Role.ASSISTANT, f"{number}: {said}"), Message(Role.USER, "go on")]
    cost = Cost(seconds=1.5, traces={"log": run.traces.put(f"log of {task}\n{said}\n".encode())})
    made.record_verdict(action, SEED, TaskId(task), Verdict.RESOLVED, f"saw {said}", score=1.0, cost=cost)


def ask_raw(run: Run, said: str, requests: int = 4) -> list[WireRequest]:
    """An evaluation whose raw requests build on each other, all begun; the first is answered, the last ones cut off."""
    to = RunBuilder(run)
    action = to.begin(Evaluate(SEED, TaskId("a")))
    turns: list[dict] = [{"role": "user", "content": f"mend it: {said}"}]
    made: list[WireRequest] = []
    for number in range(1, requests + 1):
        request = WireRequest(WireProtocol.CHAT, {"model": "m", "messages": list(turns), "stream": True})
        begun = CallStarted(action, number, "m", "solve", most=Usage(1, 100, 50, 0.5))
        run.commit([begun], partial(to.calls.begin, action=action, number=number, request=request))
        run.fold_committed()
        if number == 1:
            reply = WireReply(WireProtocol.CHAT, f'{{"said": "{said}"}}'.encode(), False, Usage(1, 2, 3))
            to.record_exchange(action, number, request, reply, "m", usage=Usage(1, 2, 3))
        if number == 2:
            run.append(CallBooked(action, number, "m", "solve", Usage(1, 100, 50), open=True))
        made.append(request)
        turns += [{"role": "assistant", "content": f"{number}: {said}"}, {"role": "user", "content": "go on"}]
    return made
