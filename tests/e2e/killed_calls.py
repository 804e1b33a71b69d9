"""Kills a search with SIGKILL while its provider streams answers, resumes it each time, and compares their accounts.

Half of the deaths come while a stream is in its middle, the others at random moments: while a process starts, at some
time after its first request, or when an answer was written to its end and may not be recorded yet.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from dgm.archive.run import Run
from dgm.models.check import QUESTION
from tests.support.call_log import Key, Log
from tests.support.streaming_provider import MODEL, Asked, StreamingProvider

HERE = Path(__file__).parent
DGM = [sys.executable, "-m", "dgm"]
NAME = "killed"


@dataclass(frozen=True)
class Trial:
    """How long a search and how many deaths."""

    kills: int
    midway: int
    """Deaths while a stream is in its middle."""
    tasks: int
    stream_s: tuple[float, float]
    alive_s: tuple[float, float]
    """Seconds up to a death, counted from the start of the process or from its first request, which is the check."""


@dataclass
class Found:
    """What was seen at the deaths."""

    kills: int = 0
    midway: int = 0
    named: set[Key] = field(default_factory=set)
    """Calls that ``status`` named."""
    answered_but_open: set[float] = field(default_factory=set)
    """When requests were read that the provider had answered wholly, and whose record was not durable yet."""
    faults: list[str] = field(default_factory=list)
    asked_again: list[str] = field(default_factory=list)


def suite(folder: Path, tasks: int) -> Path:
    """Make a suite of so many tasks out of the one of a word in a file."""
    shutil.copytree(HERE / "suites" / "word", folder)
    first = folder / "tasks" / "say-that-it-is-ready"
    for number in range(tasks):
        task = folder / "tasks" / f"status-{number:03}"
        shutil.copytree(first, task)
        problem = (task / "problem.md").read_text()
        (task / "problem.md").write_text(f"{problem}\nThis is plant {number}{'.' * (number % 3)}\n")
    shutil.rmtree(first)
    return folder


def perform(trial: Trial, archive: Path) -> dict[str, object]:
    """Run the trial in ``archive`` and return the audit."""
    benchmark = suite(archive / "suite", trial.tasks)
    provider = StreamingProvider(1, trial.stream_s)
    with provider.running():
        return _perform(trial, archive, provider, _first(trial, benchmark, provider.url))


def _first(trial: Trial, benchmark: Path, url: str) -> list[str]:
    model = f"openai-compatible/{MODEL}"
    settings = [f'models.prices."{model}".input=1', f'models.prices."{model}".output=10']
    settings += [
        f"providers.openai-compatible.base_url={url}",
        "providers.openai-compatible.tools=false",
        "limits.tries=40",
    ]
    given = [
        "--model",
        model,
        "--benchmark",
        str(benchmark),
        "--agent",
        str(HERE / "agents" / "streams"),
    ]
    given += [
        "--max-evaluations",
        str(trial.tasks),
        "--set",
        "budget.agents=1",
        "--workers",
        "3",
    ]
    given += [word for each in settings for word in ("--set", each)]
    return ["run", "--name", NAME, "--set", "sandbox=bubblewrap", *given]


def _perform(trial: Trial, archive: Path, provider: StreamingProvider, first: list[str]) -> dict[str, object]:
    folder, found, chance = archive / NAME, Found(), Random(1)
    midway = [True] * trial.midway + [False] * (trial.kills - trial.midway)
    chance.shuffle(midway)
    if trial.midway:
        # The first death leaves a run to go on with, whose first answers are under way.
        first_midway = midway.index(True)
        midway[0], midway[first_midway] = midway[first_midway], midway[0]
    environment = {**os.environ, "DGM_ARCHIVE": str(archive), "PYTHONPATH": str(HERE.parents[1])}
    command, before, began = first, set(), time.monotonic()
    while True:
        seen = len(provider.asked)
        with (archive / "output.txt").open("ab") as output:
            process = subprocess.Popen(
                DGM + command, env=environment, stdout=output, stderr=output, start_new_session=True
            )
            try:
                _await(
                    process,
                    midway[found.kills] if found.kills < trial.kills else None,
                    provider,
                    trial,
                    chance,
                )
            finally:
                died_midway = _kill(process, provider, seen)
        again = [one.key for one in provider.asked[seen:] if one.key in before]
        found.asked_again += again
        if process.returncode >= 0:
            break
        found.kills += 1
        found.midway += died_midway
        log = Log.read(folder)
        _look(_status(environment), log, provider, found)
        before = set(log.answered.values())
        command = ["resume", NAME]
    audit = _audit(folder, provider, found)
    replay = _dgm(["replay", NAME, "--what", "work", "--json"], environment)
    return {
        **audit,
        "replay_exit": replay.returncode,
        "exit": process.returncode,
        "seconds": round(time.monotonic() - began, 1),
    }


def _await(
    process: "subprocess.Popen[bytes]",
    midway: bool | None,
    provider: StreamingProvider,
    trial: Trial,
    chance: Random,
) -> None:
    """Return when the process is to be killed, or has ended."""
    if midway is None:
        process.wait()
        return
    known, since = len(provider.asked), time.monotonic()

    def until(holds: Callable[[Asked], bool]) -> None:
        while process.poll() is None and not provider.wait_for(holds, known, 0.5):
            pass

    later = chance.uniform(*trial.alive_s)
    moment = chance.choice(("answered", "asked", "asked", "started"))
    if midway:
        until(lambda one: one.midway and one.at >= since + later)
    elif moment == "answered":
        # Its record may not be durable yet.
        until(lambda one: one.stream and one.whole)
    else:
        if moment == "asked":
            until(lambda one: True)
        with suppress(subprocess.TimeoutExpired):
            process.wait(later)


def _kill(process: "subprocess.Popen[bytes]", provider: StreamingProvider, seen: int) -> bool:
    """Kill a process that has not ended; return whether a stream was in its middle."""
    if process.poll() is not None:
        return False
    os.kill(process.pid, signal.SIGKILL)
    midway = any(one.midway for one in provider.asked[seen:])
    process.wait()
    # What was sent before is read by the provider now.
    time.sleep(0.3)
    return midway


def _dgm(words: Sequence[str], environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*DGM, *words], env=environment, capture_output=True, text=True, check=False)


def _status(environment: Mapping[str, str]) -> Mapping[str, dict]:
    done = _dgm(["status", NAME, "--json"], environment)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def _look(status: Mapping, log: Log, provider: StreamingProvider, found: Found) -> None:
    """Compare what ``status`` names with what the provider was asked and the log has no answer to."""
    answered = set(log.answered.values())
    named: dict[str, list[dict]] = {}
    for call in status["cut_calls"]:
        if not call["action"]:
            continue
        key = call["action"], call["number"]
        found.named.add(key)
        if log.started[key] in answered:
            found.faults.append(f"call {key} is named though it was answered")
        named.setdefault(log.started[key], []).append(call)
    checks = log.checks + sum(not call["action"] for call in status["cut_calls"])
    if sum(QUESTION in one.key for one in provider.asked) > checks:
        found.faults.append(f"only {checks} checks of the model are counted or named")
    asked: dict[str, list[Asked]] = {}
    for one in provider.asked:
        if one.key not in answered and QUESTION not in one.key:
            asked.setdefault(one.key, []).append(one)
    for key, requests in asked.items():
        found.answered_but_open |= {one.at for one in requests if one.whole}
        calls = named.get(key, [])
        if len(calls) < len(requests):
            found.faults.append(f"{len(requests)} requests, {len(calls)} of them named: {key[-200:]}")
        worst = [
            call for call in calls if call["tokens"] >= requests[0].tokens and call["usd"] >= requests[0].usd
        ]
        if len(worst) < len(calls):
            found.faults.append(f"less than the worst case: {calls}")


def _audit(folder: Path, provider: StreamingProvider, found: Found) -> dict[str, object]:
    log = Log.read(folder)
    with Run.open(folder) as run:
        spend, left, graded = run.tree.spend, len(run.tree.model_calls.cut), run.tree.evaluations
    billed = Counter()
    for one in provider.asked:
        billed[one.key] += one.tokens
    short = [key[-200:] for key, tokens in billed.items() if QUESTION not in key and log.tokens[key] < tokens]
    tokens, usd = sum(one.tokens for one in provider.asked), sum(one.usd for one in provider.asked)
    return {
        "kills": found.kills,
        "in_mid_stream": found.midway,
        "graded": graded,
        "calls_answered": len(log.answered),
        "answered_twice": len(log.answered) - len(set(log.answered.values())),
        "requests_at_provider": len(provider.asked),
        "checks_counted": log.checks,
        "checks_at_provider": sum(QUESTION in one.key for one in provider.asked),
        "answered_and_asked_again": len(found.asked_again),
        "cut_calls_named": len(found.named),
        "of_these_wholly_sent": len(found.answered_but_open),
        "bookings_at_worst": sum(booking.open for booking in log.bookings),
        "bookings_in_all": len(log.bookings),
        "still_open": left,
        "faults": found.faults,
        "conversations_below_the_provider": short,
        "provider_tokens": tokens,
        "provider_usd": round(usd, 6),
        "dgm_tokens": spend.tokens,
        "dgm_usd": round(spend.usd, 6),
        "more_tokens": spend.tokens - tokens,
        "more_usd": round(spend.usd - usd, 6),
    }
