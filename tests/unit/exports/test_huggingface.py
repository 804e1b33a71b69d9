"""A run as a data set: what each configuration holds, and that every reader of Parquet gets through it."""

import json

import pyarrow.parquet as pq
import pytest

from dgm.archive.events import TaskGraded
from dgm.archive.run import Run
from dgm.cli.main import main
from dgm.domain import SEED, AgentId, Cost, Evaluate, Evaluation, Finding, FindingKind, TaskId, Usage, Verdict
from dgm.errors import UserError
from dgm.exports import row_writer
from dgm.exports.huggingface import write_dataset
from dgm.exports.trajectories import write_atif
from dgm.messages import Message, Reply, Request, Role, Tool, ToolCall
from tests.support.runs.builder import RunBuilder
from tests.support.runs.packable import ALICE, KEY, begin, child

pytestmark = pytest.mark.starts_processes

A, B = TaskId("a"), TaskId("b")
PROMPT = (Message(Role.SYSTEM, "You fix."), Message(Role.USER, "fix it"))
LOOK = Reply("I look.", (ToolCall("c1", "bash", '{"command": "ls"}'),), reasoning="Where?")
SEEN = (Message(Role.ASSISTANT, LOOK.text, LOOK.calls), Message(Role.TOOL, "a.py", call_id="c1"))
TOOLS = (Tool("bash", "Run.", {"type": "object"}),)


@pytest.fixture
def run(tmp_path):
    """A run with a seed and a child, open to write."""
    with begin(tmp_path / "run") as opened:
        child(opened)
        yield opened


def evaluate(run, verdict, *replies, agent=SEED, task=A, prompt=PROMPT, findings=(), tools=TOOLS):
    """An evaluation whose conversation has these replies; its action."""
    to = RunBuilder(run)
    action = to.begin(Evaluate(agent, task))
    messages = prompt
    for number, reply in enumerate(replies, 1):
        request = Request(messages, tools, "m")
        to.record_exchange(action, number, request, reply, "m", usage=Usage(1, 100, 20, 0.5))
        if not reply.error:
            messages += (
                SEEN if reply is LOOK else (Message(Role.ASSISTANT, reply.text), Message(Role.USER, "go on"))
            )
    graded = Evaluation(
        AgentId(agent), task, int(action), verdict, "test_hidden failed", 0.5,
        Cost(Usage(len(replies), 100, 20, 0.5), 2.5), findings,
    )  # fmt: skip
    run.append(TaskGraded(action, graded))
    return action


def write(run, folder, agent=None):
    """The rows of each configuration."""
    counts = write_dataset(run, agent, folder, ALICE)
    rows = {file.stem: pq.read_table(file).to_pylist() for file in folder.glob("*.parquet")}
    assert counts == {name: len(rows.get(name, ())) for name in counts}
    return rows


def test_conversation_is_a_row_with_its_messages_and_tools(run, tmp_path):
    action = evaluate(run, Verdict.RESOLVED, LOOK, Reply("Done."))
    (row,) = write(run, tmp_path / "out")["trajectories"]
    assert (row["run"], row["agent"], row["task"], row["action"]) == ("run", 0, "a", action)
    assert (row["verdict"], row["score"], row["calls"], row["segments"]) == ("resolved", 0.5, 2, 1)
    assert [message["role"] for message in row["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    turn, answer = row["messages"][2:4]
    assert turn["reasoning_content"] == "Where?"
    (call,) = map(json.loads, turn["tool_calls"])
    assert call == {
        "id": "c1",
        "type": "function",
        "function": {"name": "bash", "arguments": {"command": "ls"}},
    }
    assert (answer["content"], answer["tool_call_id"], answer["tool_calls"]) == ("a.py", "c1", None)
    assert json.loads(row["tools"][0])["function"]["name"] == "bash"


def test_evaluations_tell_costs_but_not_the_reason(run, tmp_path):
    evaluate(run, Verdict.UNRESOLVED, Reply("Hm."))
    (row,) = write(run, tmp_path / "out")["evaluations"]
    assert (row["verdict"], row["calls"], row["usd"], row["seconds"]) == ("unresolved", 1, 0.5, 2.5)
    assert row["commit"] == run.tree.agents[0].commit
    write_atif(run, None, tmp_path / "atif", ALICE)
    files = [*(tmp_path / "out").iterdir(), *(tmp_path / "atif").iterdir()]
    assert not any(b"test_hidden" in file.read_bytes() for file in files)


def test_only_honest_solutions_are_for_fine_tuning(run, tmp_path):
    good = evaluate(run, Verdict.RESOLVED, Reply("Done."))
    evaluate(run, Verdict.UNRESOLVED, Reply("Hm."))
    evaluate(run, Verdict.INVALID, Reply("Oh."))
    evaluate(run, Verdict.RESOLVED, Reply("Aha."), findings=(Finding(FindingKind.SPECIAL_CASE, "took it"),))
    rows = write(run, tmp_path / "out")
    assert [row["action"] for row in rows["sft"]] == [good]
    assert len(rows["trajectories"]) == 4


def test_pair_has_one_prompt_and_two_answers(run, tmp_path):
    good = evaluate(run, Verdict.RESOLVED, LOOK, Reply("Done."))
    bad = evaluate(run, Verdict.UNRESOLVED, Reply("Hm."), agent=1)
    (pair,) = write(run, tmp_path / "out")["preferences"]
    assert (pair["chosen_action"], pair["rejected_action"]) == (good, bad)
    assert (pair["chosen_agent"], pair["rejected_agent"], pair["task"]) == (0, 1, "a")
    assert [message["content"] for message in pair["prompt"]] == ["You fix.", "fix it"]
    assert [message["content"] for message in pair["chosen"]] == ["I look.", "a.py", "Done."]
    assert [message["content"] for message in pair["rejected"]] == ["Hm."]


@pytest.mark.parametrize(
    "other",
    [
        {"task": B},
        {"prompt": (Message(Role.SYSTEM, "You guess."), PROMPT[1])},
        {"tools": ()},
    ],
)
def test_other_tasks_prompts_and_tools_are_not_paired(run, tmp_path, other):
    evaluate(run, Verdict.RESOLVED, Reply("Done."))
    evaluate(run, Verdict.UNRESOLVED, Reply("Hm."), agent=1, **other)
    assert "preferences" not in write(run, tmp_path / "out")


def test_no_evaluation_is_in_two_pairs(run, tmp_path):
    for reply in "xyz":
        evaluate(run, Verdict.RESOLVED, Reply(reply))
    bad = [evaluate(run, Verdict.UNRESOLVED, Reply(reply), agent=1) for reply in "vw"]
    pairs = write(run, tmp_path / "out")["preferences"]
    assert [pair["rejected_action"] for pair in pairs] == bad
    assert len({pair["chosen_action"] for pair in pairs}) == 2


def test_refused_call_is_no_message(run, tmp_path):
    evaluate(run, Verdict.RESOLVED, Reply("too long", error="context_length_exceeded"), Reply("Done."))
    (row,) = write(run, tmp_path / "out")["trajectories"]
    assert [message["content"] for message in row["messages"]] == ["You fix.", "fix it", "Done."]


def test_evaluation_without_calls_has_no_conversation(run, tmp_path):
    evaluate(run, Verdict.RESOLVED)
    assert set(write(run, tmp_path / "out")) == {"evaluations"}


@pytest.mark.parametrize(
    "arguments",
    ["ls -l", '{"n": NaN}', '{"n": 1e999}', f'{{"n": {2**64}}}', f'{{"n": {"9" * 5000}}}', "[" * 200],
)
def test_arguments_that_not_every_reader_takes_are_text(run, tmp_path, arguments):
    evaluate(run, Verdict.RESOLVED, Reply("x", (ToolCall("c", "bash", arguments),)))
    (row,) = write(run, tmp_path / "out")["sft"]
    (call,) = map(json.loads, row["messages"][-1]["tool_calls"])
    assert call["function"]["arguments"] == {"text": arguments}


def test_keys_and_personal_names_are_in_no_row_and_not_in_the_card(run, tmp_path):
    text = f"{KEY} in {ALICE.home}/x, half a pair \ud800"
    evaluate(run, Verdict.RESOLVED, Reply(text, (ToolCall("c", "bash", json.dumps({"k": text})),)))
    rows = write(run, tmp_path / "out")
    message = rows["sft"][0]["messages"][-1]
    assert message["content"] == "<key> in <home>/x, half a pair ?"
    assert json.loads(message["tool_calls"][0])["function"]["arguments"]["k"].startswith("<key> in <home>/x")
    card = (tmp_path / "out" / "README.md").read_text()
    assert "<key>" in card
    assert KEY not in card


def test_card_names_the_files_that_have_rows(run, tmp_path):
    yaml = pytest.importorskip("yaml")
    evaluate(run, Verdict.UNRESOLVED, Reply("Hm."))
    write(run, tmp_path / "out")
    head = yaml.safe_load((tmp_path / "out" / "README.md").read_text().split("---\n")[1])
    configs = {config["config_name"]: config["data_files"] for config in head["configs"]}
    assert configs == {"evaluations": "evaluations.parquet", "trajectories": "trajectories.parquet"}


def test_rows_are_written_in_pieces(run, tmp_path, monkeypatch):
    monkeypatch.setattr(row_writer, "PIECE_BYTES", 100)
    actions = [evaluate(run, Verdict.UNRESOLVED, Reply("Hm.")) for _ in range(3)]
    rows = write(run, tmp_path / "out")["trajectories"]
    assert [row["action"] for row in rows] == actions
    assert pq.ParquetFile(tmp_path / "out" / "trajectories.parquet").num_row_groups == 3


def test_one_agent_is_written_alone(run, tmp_path):
    evaluate(run, Verdict.UNRESOLVED, Reply("Hm."))
    with pytest.raises(UserError, match="no evaluation has a verdict"):
        write(run, tmp_path / "none", run.tree.agents[1])
    assert not (tmp_path / "none").exists()
    assert [row["agent"] for row in write(run, tmp_path / "out", run.tree.agents[0])["evaluations"]] == [0]


@pytest.mark.slow
def test_hostile_texts_stay_texts(hostile_folder, tmp_path):
    with Run.open(hostile_folder) as run:
        rows = write(run, tmp_path / "out")
    assert rows["trajectories"]
    assert {message["role"] for row in rows["trajectories"] for message in row["messages"]} <= set(Role)


ODD = {
    "text": (Message(Role.USER, 5),),
    "tool-call": (PROMPT[1], Message(Role.ASSISTANT, "x", (ToolCall("c", "bash", 8),))),
    "call-id": (PROMPT[1], SEEN[0], Message(Role.TOOL, "x", call_id=5)),
    "system": (Message(Role.SYSTEM, {"a": 1}), PROMPT[1]),
}


@pytest.mark.parametrize("odd", ODD)
def test_call_that_dgm_did_not_write_is_one_line(run, tmp_path, capsys, odd):
    evaluate(run, Verdict.RESOLVED, Reply("x"), prompt=ODD[odd])
    with pytest.raises(SystemExit) as ended:
        main(["export", str(run.folder), f"hf:{tmp_path / 'out'}"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("parameters", [{"n": float("nan")}, {"n": 2**70}, ["x"], None])
def test_odd_parameters_of_a_tool_do_not_stop_an_export(run, tmp_path, parameters):
    evaluate(run, Verdict.RESOLVED, Reply("x"), tools=(Tool("bash", "Run.", parameters),))
    (row,) = write(run, tmp_path / "out")["sft"]
    assert json.loads(row["tools"][0])["function"]["parameters"]["text"] == json.dumps(parameters)
