"""A search that is killed while answers are streamed asks nothing twice that was answered, and hides no cost."""

import json
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from dgm.archive.events import CallBooked, CallStarted, ModelCalled, ModelLearned
from dgm.archive.journal import CallReader
from dgm.archive.run import Run
from dgm.domain import Usage
from dgm.messages import Reply
from tests.support.hosted import KEY, PROVIDERS, begun, until
from tests.support.suite_on_disk import copy_word_suite
from tests.support.wire_server import Kind, Rule, Script, WireServer

HERE = Path(__file__).parent
PROVIDER = PROVIDERS["compatible"]
USED = Usage(1, 100, 20)
"""Billed for each request, even if nobody waits for the end of its answer."""


class Talker:
    """Says the same to the same question."""

    async def answer(self, request):
        text = request.messages[-1].text
        return Reply(f"You said {text[:200]!r}. " + "word " * 20, usage=USED)


def key_of(body):
    """Return what tells equal questions: all but the system's message, which holds the time and ids."""
    return json.dumps([turn for turn in body["messages"] if turn["role"] != "system"], sort_keys=True)


@dataclass
class Log:
    """The calls of a run, each with its question; numbers are pairs of action and call."""

    started: dict = field(default_factory=dict)
    answered: dict = field(default_factory=dict)
    booked_at_worst: int = 0
    tokens: Counter = field(default_factory=Counter)
    """Question → tokens of all calls that ask it."""
    checks: int = 0


def read_log(folder):
    log = Log()
    with Run.open(folder) as run:
        reader = CallReader(run.store)
        for recorded in run.store.read():
            match recorded.event:
                case CallStarted(action, number) as call:
                    log.started[action, number] = key_of(reader.request(call).body)
                case ModelCalled(action, number, usage=usage) as call:
                    key = log.answered[action, number] = key_of(reader.request(call).body)
                    log.tokens[key] += usage.tokens
                case CallBooked(action, number, usage=usage) as call:
                    log.booked_at_worst += call.open
                    log.tokens[log.started[action, number]] += usage.tokens
                case ModelLearned(usage=usage):
                    log.checks += usage.calls
        return log, run.tree.spend, len(run.tree.model_calls.cut), run.tree.evaluations


def asked_of(server, since=0):
    """Return the complete requests of agents; one that was cut off while it was sent asks nothing."""
    return [
        record for record in server.requests[since:] if isinstance(record.body, dict) and not record.check
    ]


def is_midway(server, since):
    return any(record.status and record.reply is None for record in asked_of(server, since))


def is_answered(server, since):
    return any(record.reply is not None for record in asked_of(server, since))


def check_cut_calls(log, cut_calls, server):
    """Each request without a recorded answer is named as a call, at no less than it is billed."""
    answered, named = set(log.answered.values()), Counter()
    for call in cut_calls:
        key = log.started[call["action"], call["number"]]
        assert key not in answered
        assert call["tokens"] >= USED.tokens
        named[key] += 1
    unanswered = Counter(key_of(record.body) for record in asked_of(server)) - named
    assert not unanswered.keys() - answered


MOMENTS = ((is_midway, 0.0), (is_midway, 0.2), (is_answered, 0.0))
"""Moments at which a process is killed, and seconds after each."""


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize(("rounds", "tasks"), [(1, 7), pytest.param(3, 40, marks=pytest.mark.minutes)])
def test_nothing_answered_is_asked_again_and_what_was_cut_off_is_counted(dgm, tmp_path, rounds, tasks):
    name = f"killed-{tasks}"
    program = replace(dgm, environment={PROVIDER.key_env: KEY})
    folder, script = Path(program.archive) / name, Script([Rule(Kind.DRIP, seconds=0.8)])
    price = f'models.prices."{PROVIDER.model}"'
    settings = ("sandbox=bubblewrap", "budget.agents=1", f"{price}.input=1", f"{price}.output=10")
    command = [
        "run",
        "--name",
        name,
        "--benchmark",
        copy_word_suite(tmp_path / "suite", tasks),
        "--workers",
        3,
    ]
    command += ["--agent", HERE / "agents" / "streams", "--max-evaluations", tasks]
    command += [word for setting in (*settings, "limits.tries=40") for word in ("--set", setting)]
    with WireServer(key=KEY, models=(PROVIDER.own_name,), brain=Talker(), script=script) as server:
        command += PROVIDER.words(server.url, "tools=false")
        for moment, later_s in MOMENTS * rounds:
            before = len(server.requests)
            with begun(program, *map(str, command)) as process:
                until(lambda: moment(server, before), process)  # noqa: B023  (called in the loop)
                time.sleep(later_s)
            time.sleep(0.3)  # What was sent before is read by the provider now.
            log, *_ = read_log(folder)
            cut_calls = program.json("status", name)["cut_calls"]
            check_cut_calls(log, [call for call in cut_calls if call["action"]], server)
            assert cut_calls or moment is is_answered
            answered, before, command = set(log.answered.values()), len(server.requests), ["resume", name]
        program(*command)
        assert not answered & {key_of(record.body) for record in asked_of(server, before)}
    program("replay", name, "--what", "work", "--json")
    log, spend, still_open, graded = read_log(folder)
    assert (graded, still_open) == (tasks, 0)
    assert len(log.answered) == len(set(log.answered.values()))
    assert log.booked_at_worst >= 2
    billed = Counter(key_of(record.body) for record in asked_of(server))
    assert all(log.tokens[key] >= times * USED.tokens for key, times in billed.items())
    assert log.checks >= sum(record.check for record in server.requests)
    assert spend.tokens >= USED.tokens * len(asked_of(server))
