"""The recorded search with a small real model: it opens, its report is honest, and its traffic replays."""

import json

import pytest

from dgm.api.replaying import replay
from dgm.archive.finding import find_run
from dgm.benchmarks.grader_version import differ_in_grader
from dgm.benchmarks.suites import SuiteBenchmark
from dgm.messages import Stop
from dgm.paths import asset
from dgm.replay.again import Match
from tests.model.record import Record
from tests.support.suite_on_disk import NoEngine

pytestmark = pytest.mark.sampled

NAME = "real-example"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Its unpacked copy, which is only read."""
    return find_run(NAME, here=tmp_path_factory.mktemp("empty"), environment={})


def test_it_opens_in_the_commands_that_read(dgm):
    assert "agent 0" in dgm("show", NAME).stdout
    assert dgm.json("status", NAME)["models"]["solve"] == "openai-compatible/qwen2.5-coder-0.5b"
    assert dgm("replay", NAME).stdout.startswith(f"{len(decisions(dgm))} decisions, all identical")
    said = dgm("run", "--name", NAME, "--model", "offline", code=2).stderr
    assert "a run's name" in said


def decisions(dgm):
    events = map(json.loads, dgm("show", NAME, "--events", "--json").stdout.splitlines())
    return [event for event in events if event["kind"] == "action_started"]


def test_its_report_claims_nothing_that_was_not_shown(dgm):
    said = dgm("report", NAME).stdout
    assert "no agent is better: the policy recommends the seed itself" in said
    assert "it is better" not in said


def test_its_traffic_is_that_of_a_real_model(folder):
    record = Record.read(folder)
    replies = [call.reply for call in record.calls]
    assert any(reply.stop is Stop.LENGTH for reply in replies), "none was cut off"
    assert any(reply.error == "context_length_exceeded" for reply in replies), "none was refused"
    assert not any(reply.calls for reply in replies), "the model made native calls"


@pytest.mark.sandbox
def test_its_agents_do_the_same_on_their_recorded_replies(folder):
    record = Record.read(folder)
    version = SuiteBenchmark(asset("benchmarks", "starter"), NoEngine()).version
    if version != record.suite and not differ_in_grader(record.suite, version):
        pytest.skip(
            "NOT RUN: it was recorded with another version of the starter suite; see `make real-example`"
        )
    chosen = [str(one.task) for one in record.graded[:3]]
    for task in chosen:
        done = replay(folder, what="work", task=task, settings=["sandbox=bubblewrap"])
        assert {evaluation.match for evaluation in done.evaluations} <= {Match.SAME, Match.CUT_SHORT}
