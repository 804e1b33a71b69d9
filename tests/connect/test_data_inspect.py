"""Exported logs read back by Inspect itself, with its viewer's own listing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dgm.api.exporting import export
from dgm.archive.run import Run
from dgm.domain import TaskId, Verdict
from dgm.exports.inspect_logs import write_logs
from dgm.messages import Reply, ToolCall
from tests.support.runs.hostile import hostile_folder
from tests.support.runs.packable import ALICE, KEY, begin, child
from tests.unit.exports.test_huggingface import LOOK, evaluate

pytestmark = [pytest.mark.connect, pytest.mark.starts_processes]
log = pytest.importorskip("inspect_ai.log")

__all__ = ["hostile_folder"]


def read(folder):
    return [log.read_eval_log(info) for info in log.list_eval_logs(str(folder), descending=False)]


@pytest.fixture
def run(tmp_path):
    with begin(tmp_path / "run", {"model": "m"}) as opened:
        child(opened)
        yield opened


def test_each_agent_is_a_log_and_each_evaluation_a_sample(tmp_path):
    counts = export("example", f"inspect:{tmp_path / 'logs'}").counts
    logs = read(tmp_path / "logs")
    assert (len(logs), sum(len(each.samples) for each in logs)) == (counts["logs"], counts["samples"])
    assert {each.status for each in logs} == {"success"}
    assert [each.tags for each in logs] == [[f"agent-{number}"] for number in range(len(logs))]
    for each in logs:
        resolved, share = each.results.scores
        values = [sample.scores["resolved"].value == "C" for sample in each.samples]
        assert resolved.metrics["accuracy"].value == pytest.approx(sum(values) / len(values))
        assert share.metrics["mean"].value == pytest.approx(
            sum(sample.scores["share"].value for sample in each.samples) / len(values)
        )
        assert each.samples[0].messages[-1].role == "assistant"


def test_sample_holds_the_conversation_and_its_usage(run, tmp_path):
    evaluate(run, Verdict.RESOLVED, LOOK, Reply("Done."))
    write_logs(run, None, tmp_path / "logs", ALICE)
    (sample,) = read(tmp_path / "logs")[0].samples
    assert [message.role for message in sample.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert (sample.input, sample.scores["resolved"].value, sample.scores["share"].value) == (
        "fix it",
        "C",
        0.5,
    )
    (call,) = sample.messages[2].tool_calls
    assert (call.id, call.function, call.arguments) == ("c1", "bash", {"command": "ls"})
    assert sample.messages[2].content[0].reasoning == "Where?"
    assert (sample.messages[3].text, sample.messages[3].function) == ("a.py", "bash")
    assert sample.output.completion == "Done."
    usage = sample.model_usage["m"]
    assert (usage.input_tokens, usage.output_tokens, usage.total_cost) == (200, 40, 1.0)


def test_attempts_are_epochs_and_invalid_ones_have_no_score(run, tmp_path):
    for verdict in (Verdict.RESOLVED, Verdict.UNRESOLVED, Verdict.INVALID):
        evaluate(run, verdict, Reply("x"))
    evaluate(run, Verdict.RESOLVED, Reply("x"), task=TaskId("b"))
    write_logs(run, None, tmp_path / "logs", ALICE)
    (each,) = read(tmp_path / "logs")
    assert len({(sample.id, sample.epoch) for sample in each.samples}) == 4
    (invalid,) = [sample for sample in each.samples if sample.error]
    assert not invalid.scores
    # Means of tasks, each over its attempts: 1/2 and 1.
    assert each.results.scores[0].metrics["accuracy"].value == 0.75
    assert each.results.scores[0].unscored_samples == 1


def test_keys_personal_names_and_reasons_are_in_no_log(run, tmp_path):
    text = f"{KEY} in {ALICE.home}/x, half a pair \ud800"
    evaluate(run, Verdict.RESOLVED, Reply(text, (ToolCall("c", "bash", json.dumps({"k": text})),)))
    write_logs(run, None, tmp_path / "logs", ALICE)
    (sample,) = read(tmp_path / "logs")[0].samples
    assert sample.messages[-1].text == "<key> in <home>/x, half a pair ?"
    assert not any(text in sample.model_dump_json() for text in (KEY, "alice", "test_hidden"))


def test_hostile_texts_are_read_back(hostile_folder, tmp_path):
    with Run.open(hostile_folder) as opened:
        counts = write_logs(opened, None, tmp_path / "logs", ALICE)
    assert sum(len(each.samples) for each in read(tmp_path / "logs")) == counts["samples"] > 0


def test_the_viewer_takes_the_folder(tmp_path):
    export("real-example", f"inspect:{tmp_path / 'logs'}")
    program = str(Path(sys.executable).parent / "inspect")
    bundle = ["view", "bundle", "--log-dir", str(tmp_path / "logs"), "--output-dir", str(tmp_path / "site")]
    done = subprocess.run([program, *bundle], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "site" / "logs").glob("*.eval"))) == len(list((tmp_path / "logs").iterdir()))
