"""Trajectories as a folder of files: the agents' own as they are, else the recorded calls."""

import json

import pytest

from dgm.archive.run import Run
from dgm.cli.main import main
from dgm.domain import SEED, Cost, Evaluate, TaskId, Usage, Verdict
from dgm.errors import UserError
from dgm.exports.trajectories import INDEX, write_trajectories
from dgm.messages import Message, Reply, Request, Role, ToolCall
from dgm.meta.trajectories import read_trajectory
from tests.support.runs.builder import RunBuilder
from tests.support.runs.packable import ALICE, KEY, begin, child, evaluate

pytestmark = pytest.mark.starts_processes

TASK = TaskId("a")
USAGE = Usage(1, 100, 20, 0.5, 40)
ASKED = (Message(Role.SYSTEM, "You fix."), Message(Role.USER, "fix it"))
LOOK = Reply("I look.", (ToolCall("c1", "bash", '{"command": "ls"}'),))
SEEN = (Message(Role.ASSISTANT, LOOK.text, LOOK.calls), Message(Role.TOOL, "a.py", call_id="c1"))
OWN = b'{"trajectory_format": "mini-swe-agent-1.1", "messages": [{"role": "user", "content": "fix"}]}'
OWN_LINES = b'{"source": "user", "action": "message"}\n{"observation": "run", "content": "a.py"}\n'


@pytest.fixture
def made(tmp_path):
    """A run with a seed, open to write."""
    with begin(tmp_path / "run") as run:
        yield run


def evaluated(run, exchanges=(), traces=(), task=TASK):
    """An evaluation of the seed with these calls (request's messages and reply) and traces; its action."""
    to = RunBuilder(run)
    action = to.begin(Evaluate(SEED, task))
    for number, (messages, reply) in enumerate(exchanges, 1):
        to.record_exchange(action, number, Request(tuple(messages), (), "m"), reply, "m", usage=USAGE)
    kept = {name: run.traces.put(data) for name, data in dict(traces).items()}
    to.record_verdict(action, SEED, task, Verdict.RESOLVED, "ok", score=1.0, cost=Cost(traces=kept))
    return action


def written(run, folder, agent=None):
    """The lines of the index, and the content of the files by name."""
    write_trajectories(run, agent, folder, ALICE)
    rows = [json.loads(line) for line in (folder / INDEX).read_text().splitlines()]
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != INDEX}
    assert {row["file"] for row in rows} - {None} == set(files)
    return rows, files


def document(run, folder):
    """The only trajectory of a run."""
    _, files = written(run, folder)
    (data,) = files.values()
    return json.loads(data, parse_constant=pytest.fail)


def test_recorded_calls_become_steps_with_what_the_tools_answered(made, tmp_path):
    evaluated(made, [(ASKED, LOOK), ((*ASKED, *SEEN), Reply("Done.", reasoning="It is there."))])
    found = document(made, tmp_path / "out")
    assert found["schema_version"] == "ATIF-v1.4"
    assert [step["step_id"] for step in found["steps"]] == [1, 2, 3, 4]
    assert [step["source"] for step in found["steps"]] == ["system", "user", "agent", "agent"]
    called = {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "ls"}}
    assert found["steps"][2]["tool_calls"] == [called]
    assert found["steps"][2]["observation"] == {"results": [{"content": "a.py", "source_call_id": "c1"}]}
    assert found["steps"][3]["reasoning_content"] == "It is there."
    assert found["final_metrics"]["total_cost_usd"] == 2 * USAGE.usd
    assert found["final_metrics"]["total_prompt_tokens"] == 2 * USAGE.input_tokens
    assert (found["extra"]["task"], found["extra"]["verdict"]) == ("a", "resolved")
    said = [(message.role, message.text) for message in read_trajectory(json.dumps(found).encode())]
    assert said[2:4] == [(Role.ASSISTANT, "I look."), (Role.TOOL, "a.py")]


def test_a_history_that_is_sent_again_is_not_repeated(made, tmp_path):
    shortened = (*ASKED, SEEN[0], Message(Role.TOOL, "[left out]", call_id="c1"))
    again = (*shortened, Message(Role.ASSISTANT, "Hm."), Message(Role.USER, "go on"))
    calls = [
        (ASKED, LOOK),
        ((*ASKED, *SEEN), Reply("Hm.")),
        (again, Reply("Hm.")),
        ((*again, Message(Role.ASSISTANT, "Hm."), Message(Role.USER, "go on")), Reply("Done.")),
    ]
    evaluated(made, calls)
    steps = document(made, tmp_path / "out")["steps"]
    assert [(step["source"], step["message"]) for step in steps[2:]] == [
        ("agent", "I look."),
        ("agent", "Hm."),
        ("user", "go on"),
        ("agent", "Hm."),
        ("user", "go on"),
        ("agent", "Done."),
    ]
    assert [each["content"] for each in steps[2]["observation"]["results"]] == ["a.py"]


@pytest.mark.parametrize("ident", ["call_0", ""])
def test_answers_belong_to_their_turn_where_calls_have_one_id_or_none(made, tmp_path, ident):
    turns = [Reply(f"I {word}.", (ToolCall(ident, word, "{}"),)) for word in ("look", "read")]
    sent, calls = ASKED, []
    for turn, seen in zip(turns, ("a.py", "x = 1"), strict=True):
        calls.append((sent, turn))
        answer = Message(Role.TOOL, seen, call_id=ident)
        sent = (*sent, Message(Role.ASSISTANT, turn.text, turn.calls), answer)
    evaluated(made, [*calls, (sent, Reply("Done."))])
    steps = document(made, tmp_path / "out")["steps"]
    seen = [[each["content"] for each in step["observation"]["results"]] for step in steps[2:4]]
    assert seen == [["a.py"], ["x = 1"]]


def test_what_no_model_of_the_run_said_has_no_metrics(made, tmp_path):
    shown = (*ASKED, Message(Role.ASSISTANT, "an example"), Message(Role.USER, "now you"))
    evaluated(made, [(shown, Reply("Done."))])
    steps = document(made, tmp_path / "out")["steps"]
    assert [(step["message"], "metrics" in step) for step in steps if step["source"] == "agent"] == [
        ("an example", False),
        ("Done.", True),
    ]


@pytest.mark.parametrize("given", ["ls -l", '["ls"]', '{"n": NaN}', ""])
def test_arguments_that_are_no_object_are_kept_as_text(made, tmp_path, given):
    evaluated(made, [(ASKED, Reply("", (ToolCall("", "bash", given),)))])
    (call,) = document(made, tmp_path / "out")["steps"][2]["tool_calls"]
    assert call == {"tool_call_id": "step-3-1", "function_name": "bash", "arguments": {"text": given}}


def test_odd_characters_leave_the_file_readable(made, tmp_path):
    said = "half \ud83d, \x1b[31m, \u202e, ü"
    evaluated(made, [(ASKED, Reply(said))])
    (data,) = written(made, tmp_path / "out")[1].values()
    assert all(char.isprintable() or char == "\n" for char in data.decode())
    assert json.loads(data)["steps"][2]["message"] == "half ?, \x1b[31m, \u202e, ü"


def test_an_agents_own_file_is_written_as_it_wrote_it(made, tmp_path):
    first = evaluated(made, [(ASKED, Reply("x"))], {"trajectory": OWN})
    second = evaluated(made, traces={"trajectory": OWN_LINES}, task=TaskId("../b c"))
    rows, files = written(made, tmp_path / "out")
    assert files == {
        f"agent-0.a.action-{first}.json": OWN,
        f"agent-0.b-c.action-{second}.jsonl": OWN_LINES,
    }
    told = {(row["task"], row["written_by"], row["form"]) for row in rows}
    assert told == {("a", "agent", "mini-swe-agent-1.1"), ("../b c", "agent", "events")}
    assert [row["usd"] for row in rows if row["task"] == "a"] == [USAGE.usd]


def test_each_try_has_a_file_of_its_own(made, tmp_path):
    action = evaluated(made, traces={"trajectory": OWN, "trajectory-1": OWN_LINES, "log-1": b"", "log": b""})
    rows, files = written(made, tmp_path / "out")
    assert files == {
        f"agent-0.a.action-{action}.try-1.jsonl": OWN_LINES,
        f"agent-0.a.action-{action}.try-2.json": OWN,
    }
    assert [row["try"] for row in rows] == [1, 2]


def test_an_evaluation_without_any_has_a_line_alone(made, tmp_path):
    evaluated(made)
    rows, files = written(made, tmp_path / "out")
    assert not files
    assert [(row["file"], row["written_by"], row["verdict"]) for row in rows] == [(None, "", "resolved")]


def test_keys_and_personal_names_are_in_no_file(made, tmp_path):
    said = f"{KEY} in {ALICE.home}/x"
    evaluate(made, said)
    own = json.dumps([{"role": "user", "content": said}]).encode()
    evaluated(made, traces={"trajectory": own}, task=TaskId("b"))
    files = written(made, tmp_path / "out")[1].values()
    assert len(files) == 2
    assert all(b"<key> in <home>/x" in data for data in files)
    assert not any(KEY.encode() in data or b"alice" in data for data in files)


def test_personal_names_are_in_no_name_of_a_file(made, tmp_path):
    evaluated(made, traces={"trajectory": OWN}, task=TaskId("on-atlas-7/home/alice/x"))
    ((row,), files) = written(made, tmp_path / "out")
    assert [*files] == [row["file"]]
    assert "atlas" not in row["file"]
    assert "alice" not in row["file"]


def test_one_agents_are_written_alone(made, tmp_path):
    child(made)
    evaluated(made, [(ASKED, Reply("x"))])
    rows, _ = written(made, tmp_path / "out", made.tree.agents[0])
    assert [row["agent"] for row in rows] == [0]
    with pytest.raises(UserError, match="no evaluation of agent 1 has a verdict yet"):
        write_trajectories(made, made.tree.agents[1], tmp_path / "none", ALICE)
    assert not (tmp_path / "none").exists()


def test_a_damaged_call_leaves_no_folder(made, tmp_path, capsys):
    action = evaluated(made, [(ASKED, Reply("x"))])
    made.commit([], lambda log: log.execute("UPDATE calls SET request = x'3f' WHERE action = ?", (action,)))
    with pytest.raises(SystemExit) as ended:
        main(["export", str(made.folder), f"{tmp_path}/trajectories/"])
    assert ended.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.slow
def test_hostile_texts_name_no_file_elsewhere(hostile_folder, tmp_path):
    with Run.open(hostile_folder) as run:
        rows, files = written(run, tmp_path / "out")
    assert len(rows) >= len(files) > 0
    assert all(name.isascii() and name.startswith("agent-") and "/" not in name for name in files)
