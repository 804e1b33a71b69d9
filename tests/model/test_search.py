"""A search with a real model that is killed and stopped while it answers, and resumed to its end."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from dgm.domain import Verdict
from dgm.messages import Stop
from tests.e2e.killing import audit
from tests.model.record import Record

pytestmark = [pytest.mark.model, pytest.mark.timeout(3600)]
NAME = "real"
EVALUATIONS, EXPANSIONS, COST = 6, 2, 4
"""An expansion takes as much of the budget as so many evaluations."""
SMALL = ["--set", "limits.calls=3", "--set", "limits.output_tokens=80", "--set", "limits.time_factor=20"]
STARTER = ["--agent", "solid", "--benchmark", "starter", "--set", "sandbox=bubblewrap", "--workers", "2"]
OPEN = """select count(*) from events as one where kind = 'call_started' and not exists (
    select 1 from events where kind = 'model_called' and seq > one.seq
    and json_extract(body, '$.action') = json_extract(one.body, '$.action')
    and json_extract(body, '$.number') = json_extract(one.body, '$.number'))"""


def count_open_calls(log: Path) -> int:
    """Return how many calls of agents are under way, as the log of a run that is written says."""
    try:
        with closing(sqlite3.connect(f"file:{log}?mode=ro", uri=True)) as connection:
            return int(connection.execute(OPEN).fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def stop_in_mid_reply(dgm, words, answers, *signals):
    """Start a command, and end it by signals while a call is under way, after so many answers of its own."""
    log = dgm.archive / NAME / "run.db"
    before = count_answers(log)
    with (dgm.archive / "output.txt").open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "dgm", *words],
            env=dgm.variables,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        while process.poll() is None and (count_answers(log) < before + answers or not count_open_calls(log)):
            time.sleep(0.05)
        assert process.poll() is None, (dgm.archive / "output.txt").read_text()[-3000:]
        for number in signals:
            os.kill(process.pid, number)
            time.sleep(0.5)
        return process.wait(600)


def count_answers(log: Path) -> int:
    """Return how many calls were answered."""
    try:
        with closing(sqlite3.connect(f"file:{log}?mode=ro", uri=True)) as connection:
            return int(
                connection.execute("select count(*) from events where kind = 'model_called'").fetchone()[0]
            )
    except sqlite3.OperationalError:
        return 0


@pytest.fixture(scope="module")
def searched(dgm, server):
    """The folder of a run that was killed, stopped and resumed; the calls that were answered at each end."""
    server.wait_for(200)
    first = ["run", "--name", NAME, *STARTER, *SMALL, *server.options]
    first += ["--max-evaluations", str(EVALUATIONS + EXPANSIONS * COST)]
    first += ["--set", f"budget.expansion_cost={COST}"]
    assert stop_in_mid_reply(dgm, first, 2, signal.SIGKILL) == -signal.SIGKILL
    answered = [Record.read(dgm.archive / NAME).calls]
    assert stop_in_mid_reply(dgm, ["resume", NAME], 1, signal.SIGINT, signal.SIGINT) == 130
    answered.append(Record.read(dgm.archive / NAME).calls)
    # Longer than other tests wait for a command: on a machine that does much else the model is twenty times as slow.
    words = [sys.executable, "-m", "dgm", "resume", NAME]
    done = subprocess.run(words, env=dgm.variables, capture_output=True, text=True, timeout=3000, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dgm.archive / NAME, answered


@pytest.fixture(scope="module")
def record(searched):
    return Record.read(searched[0])


def test_every_evaluation_has_a_verdict_and_none_is_invalid(record):
    assert len(record.graded) == EVALUATIONS
    assert Verdict.INVALID not in {graded.verdict for graded in record.graded}


def test_every_answered_call_has_recorded_usage(record):
    assert record.calls
    for call in record.calls:
        assert call.reply.usage.input_tokens > 0
        assert call.reply.error or call.reply.usage.output_tokens > 0


def test_nothing_that_was_answered_is_paid_twice(searched, record):
    folder, answered = searched
    for earlier in answered:
        assert record.calls[: len(earlier)] == earlier
    asked = Counter((call.action, str(call.messages)) for call in record.calls)
    again = [key for key, times in asked.items() if times > 1]
    assert not again
    found = audit(folder)
    assert found["graded_twice"] == found["calls_twice"] == found["fsck"] == 0
    assert found["performed_again"] > 0
    assert found["leftovers"] == []
    assert found["sessions"] == 3


def test_agents_act_by_text(record):
    solving = [call for call in record.calls if call.role == "solve"]
    assert {len(call.messages) > 4 for call in solving} == {True, False}


def test_an_agent_is_told_of_a_reply_that_ran_away(record):
    by_action = {}
    told = 0
    for call in record.calls:
        earlier = by_action.get(call.action)
        if earlier is not None and earlier.reply.stop is Stop.LENGTH:
            assert "cut off at its length limit" in call.messages[-1]["content"]
            told += 1
        by_action[call.action] = call
    assert told > 0


def test_commands_work_on_the_run(dgm, searched):
    status = dgm.json("status", NAME)
    assert status["evaluations"]["graded"] == EVALUATIONS
    assert not status["cut_calls"]
    dgm("show", NAME)
    dgm("show", NAME, "seed")
    dgm("replay", NAME)
    dgm("export", NAME, dgm.archive / "verified.dgm")
