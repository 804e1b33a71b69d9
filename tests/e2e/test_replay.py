"""``dgm replay`` on a real run in bubblewrap: on its record, on a damaged record, and live."""

import hashlib
import json
import shutil
import sqlite3
import zlib
from contextlib import closing
from dataclasses import replace

import pytest

from dgm.archive.journal import CallReader, encode_reply
from dgm.archive.run import Run
from tests.support.program import copy_of_run

pytestmark = pytest.mark.sandbox


@pytest.fixture
def copy(dgm, searched):
    """A copy of the finished run, under a name of its own, to be tampered with."""
    folder = dgm.archive / "tampered"
    copy_of_run(dgm.archive / "small", folder)
    yield folder
    shutil.rmtree(folder)


def contents(folder):
    """Every file of a run but SQLite's own side files, by its hash."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and "run.db-" not in path.name)
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def first_call_with_tools(run, action):
    """The first model call of an action whose reply runs a tool."""
    for recorded in run.store.events_of_action(action):
        if type(recorded.event).__name__ == "ModelCalled":
            reply = CallReader(run.store).reply(recorded.event)
            if reply.calls:
                return recorded.event, reply
    raise AssertionError("no reply with a tool call")


def test_a_lineage_is_made_again_commit_by_commit_and_nothing_is_written(dgm, searched):
    before = contents(dgm.archive / "small")
    deepest = dgm.json("show", "small", "best", "--lineage")["lineage"]
    found = dgm.json("replay", "small", "--what", "lineage")
    assert found["identical"]
    assert [step["commit"] for step in found["steps"]] == [agent["commit"] for agent in deepest]
    assert all(step["commit"] == step["again"] for step in found["steps"])
    assert contents(dgm.archive / "small") == before


def test_patches_get_the_same_verdicts_again(dgm, searched):
    found = dgm.json("replay", "small", "seed", "--what", "evaluations")
    assert found["identical"]
    assert len(found["evaluations"]) == dgm.json("show", "small", "seed")["own"]["n"]


def test_agents_leave_the_same_patches_again(dgm, searched):
    before = contents(dgm.archive / "small")
    found = dgm.json("replay", "small", "seed", "--what", "work")
    assert found["identical"] and found["counts"]["same"] > 0
    assert contents(dgm.archive / "small") == before


def test_a_packed_run_replays_too(dgm, searched, tmp_path):
    dgm("export", "small", tmp_path / "small.dgm")
    assert dgm.json("replay", tmp_path / "small.dgm", "1", "--what", "lineage")["identical"]
    done = dgm("replay", tmp_path / "small.dgm", "1", "--what", "evaluations", "--live", "offline", code=2)
    assert "unpack it first" in done.stderr


def test_another_reply_is_a_divergence_with_action_and_call(dgm, copy):
    with Run.open(copy) as run:
        action = run.tree.agents[1].action
        event, reply = first_call_with_tools(run, action)
        call = replace(reply.calls[0], arguments=json.dumps({"command": "echo tampered"}))
    forged = zlib.compress(encode_reply(replace(reply, calls=(call, *reply.calls[1:]))))
    with closing(sqlite3.connect(copy / "run.db")) as log, log:
        where = (forged, action, event.number)
        log.execute("UPDATE calls SET reply = ? WHERE action = ? AND number = ?", where)
    found = dgm.json("replay", "tampered", "1", "--what", "lineage", code=1)
    divergence = found["steps"][1]["divergence"]
    assert found["steps"][1]["match"] == "different"
    assert (divergence["action"], divergence["call"]) == (action, event.number + 1)
    assert "tampered" in divergence["what"]
    said = dgm("replay", "tampered", "1", "--what", "lineage", code=1).stdout
    assert f"action {action}, call {event.number + 1}: " in said
    assert "1 identical, 1 differs" in said


def test_one_changed_byte_of_a_call_is_found_and_named(dgm, copy):
    with Run.open(copy) as run:
        event, _ = first_call_with_tools(run, run.tree.agents[1].action)
    where = "WHERE action = ? AND number = ?", (event.action, event.number)
    with closing(sqlite3.connect(copy / "run.db")) as log, log:
        data = bytearray(log.execute(f"SELECT reply FROM calls {where[0]}", where[1]).fetchone()[0])
        data[len(data) // 2] ^= 1
        log.execute(f"UPDATE calls SET reply = ? {where[0]}", (bytes(data), *where[1]))
    done = dgm("replay", "tampered", "1", "--what", "lineage", code=2)
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("dgm: ")]
    assert f"action {event.action}, call {event.number}: its reply" in line


def test_live_evaluations_are_compared_in_pairs_within_their_money_and_paid_once(dgm, copy):
    words = ["replay", "tampered", "seed", "--what", "evaluations", "--live", "offline"]
    words += ["--set", "models.prices.offline={input=100.0,output=1.0}"]
    poor = dgm.json(*words, "--max-usd", "0.9", code=3)
    assert poor["missing"] > 0
    assert 0 < poor["spend"]["usd"] <= 0.9
    found = dgm.json(*words, "--max-usd", "50")
    assert (found["missing"], found["folder"]) == (0, str(copy / "live-offline-1"))
    assert found["against_record"]["first"] == found["against_record"]["second"]
    again = dgm.json(*words)
    assert (again["spend"], again["folder"]) == (found["spend"], found["folder"])
    assert dgm.json("replay", copy / "live-offline-1")["identical"]
    assert "is an evaluation, not a search" in dgm("resume", copy / "live-offline-1", code=2).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1", "--what", "lineage", "--live", "offline"], "--what: another model repeats evaluations only"),
        (["1", "--what", "evaluations", "--live", "openai/gpt-6.2-sol"], "OPENAI_API_KEY is not set"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_made(dgm, searched, words, message):
    before = contents(dgm.archive / "small")
    done = dgm("replay", "small", *words, code=2)
    assert message in done.stderr
    assert (len(done.stderr.strip().splitlines()), done.stdout) == (1, "")
    assert contents(dgm.archive / "small") == before
