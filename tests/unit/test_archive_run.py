import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dgm.archive.events import ActionStarted, RunStarted, TaskGraded
from dgm.archive.exchange import encode_request
from dgm.archive.finding import find_run
from dgm.archive.journal import RunJournal, read_request
from dgm.archive.lineage import Lineage
from dgm.archive.run import Run
from dgm.domain import (
    SEED,
    ActionId,
    AgentId,
    Born,
    Budget,
    Entry,
    Evaluate,
    Evaluation,
    Expand,
    Tally,
    TaskId,
    Usage,
    Verdict,
)
from dgm.errors import ArchiveBusy, ArchiveCorrupt, DgmError, UserError
from dgm.messages import CallKey, Message, Reply, Request, Role, Stop, Tool, ToolCall


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "archive" / "first"


@pytest.fixture
def run(folder: Path) -> Iterator[Run]:
    with Run.create(folder, {"seed": 7}) as run:
        run.append(RunStarted(Budget(evaluations=5), (TaskId("a"),)))
        seed = run.repository.commit({"agent.toml": Entry(b"[agent]\n")}, ())
        run.append(run.birth(Born((), "seed", seed, "the seed"), ActionId(0)))
        yield run


def expand(run: Run) -> AgentId:
    action = run.tree.next_action
    run.append(ActionStarted(action, Expand((SEED,), "op")))
    parent = run.tree.agents[0].commit
    commit = run.repository.commit({"agent.toml": Entry(b"[agent]\n# %d\n" % action)}, (parent,))
    run.append(run.birth(Born((SEED,), "op", commit, "longer"), action))
    return AgentId(len(run.tree.agents) - 1)


def test_run_comes_back_as_it_was_left(run: Run, folder: Path) -> None:
    child = expand(run)
    run.append(ActionStarted(ActionId(2), Evaluate(child, TaskId("a"))))
    run.close()
    with Run.open(folder) as again:
        assert again.config == {"seed": 7}
        assert again.name == "first"
        assert again.tree.pending == {2: Evaluate(child, TaskId("a"))}
        assert again.source(child) == {"agent.toml": Entry(b"[agent]\n# 1\n")}


def test_reader_follows_the_writer(run: Run, folder: Path) -> None:
    with Run.open(folder) as reader:
        assert list(reader.follow()) == []
        evaluation = Evaluation(SEED, TaskId("a"), 0, Verdict.RESOLVED, "ok")
        recorded = run.append(TaskGraded(ActionId(1), evaluation))
        assert list(reader.follow()) == [recorded]
        assert reader.tree.own(SEED) == Tally(1, 0)


def test_outcome_of_an_action_is_found(run: Run) -> None:
    run.append(ActionStarted(ActionId(1), Evaluate(SEED, TaskId("a"))))
    assert run.outcome(ActionId(1)) is None
    recorded = run.append(TaskGraded(ActionId(1), Evaluation(SEED, TaskId("a"), 0, Verdict.UNRESOLVED, "no")))
    assert run.outcome(ActionId(1)) == recorded


def test_second_writer_is_refused_and_readers_are_not(run: Run, folder: Path) -> None:
    with pytest.raises(ArchiveBusy, match="pid"):
        Run.open(folder, write=True)
    Run.open(folder).close()


def test_existing_run_is_not_made_again(run: Run, folder: Path) -> None:
    with pytest.raises(UserError, match="already exists"):
        Run.create(folder, {})


def test_left_over_of_a_killed_creation_is_replaced(folder: Path) -> None:
    draft = folder.with_name(".first.new")
    draft.mkdir(parents=True)
    (draft / "events.db").write_text("half")
    with Run.create(folder, {}) as run:
        assert run.store.last == 0
    assert not draft.exists()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("{", ArchiveCorrupt, r"run\.json: not what dgm wrote"),
        ("[]", ArchiveCorrupt, r"run\.json: not what dgm wrote"),
        (json.dumps({"format": 99, "config": {}}), UserError, "newer dgm"),
    ],
)
def test_unusable_configuration_is_named(
    run: Run, folder: Path, text: str, error: type[DgmError], message: str
) -> None:
    run.close()
    (folder / "run.json").write_text(text)
    with pytest.raises(error, match=message):
        Run.open(folder)


def test_missing_events_are_not_made_up(run: Run, folder: Path) -> None:
    run.close()
    (folder / "events.db").unlink()
    with pytest.raises(ArchiveCorrupt, match=r"events\.db: missing"):
        Run.open(folder, write=True)


def test_ordinary_folder_is_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a run"):
        Run.open(tmp_path)


def test_run_is_found_by_path_by_name_and_in_the_configured_archive(run: Run, folder: Path) -> None:
    here = folder.parent.parent
    assert find_run("first", here=here, environment={}) == folder
    assert find_run(str(folder), here=Path("/"), environment={}) == folder
    assert find_run("first", here=Path("/"), environment={"DGM_ARCHIVE": str(folder.parent)}) == folder


def test_unknown_run_suggests_the_nearest(run: Run, folder: Path) -> None:
    with pytest.raises(UserError, match="no run 'frist'; did you mean 'first'"):
        find_run("frist", here=folder.parent.parent, environment={})
    with pytest.raises(UserError, match=r"known in .*: first"):
        find_run("xyzzy", here=folder.parent.parent, environment={})


# The journal


def conversation(turns: int) -> list[Request]:
    tools = (Tool("bash", "runs a command", {"type": "object"}),)
    messages = [Message(Role.SYSTEM, "be brief"), Message(Role.USER, "mend it \udcff")]
    requests = []
    for turn in range(turns):
        requests.append(Request(tuple(messages), tools, "m", 0.0, 100))
        messages.append(Message(Role.ASSISTANT, "", (ToolCall(f"c{turn}", "bash", '{"command": "ls"}'),)))
        messages.append(Message(Role.TOOL, f"output {turn} " * 50, call_id=f"c{turn}"))
    return requests


REPLY = Reply("done", (ToolCall("c", "bash", "{}"),), Stop.TOOL_CALLS, Usage(1, 10, 2, 0.125))


def test_paid_reply_is_found_again_after_a_restart(run: Run, folder: Path) -> None:
    RunJournal(run, "offline").record(CallKey(ActionId(1), 1), "solve", conversation(1)[0], REPLY, 0.5)
    run.close()
    with Run.open(folder) as again:
        journal = RunJournal(again, "offline")
        assert journal.recorded(CallKey(ActionId(1), 1)) == REPLY
        assert journal.recorded(CallKey(ActionId(1), 2)) is None
        assert again.tree.spend == REPLY.usage


def test_every_request_of_a_long_conversation_comes_back(run: Run) -> None:
    journal, requests = RunJournal(run, "offline"), conversation(80)
    for number, request in enumerate(requests, 1):
        journal.record(CallKey(ActionId(1), number), "solve", request, REPLY, 0.5)
    for number, request in enumerate(requests, 1):
        call = run.store.call(1, number)
        assert call is not None
        assert read_request(run, call.request) == request


def test_long_conversation_takes_little_more_than_its_messages(run: Run, folder: Path) -> None:
    journal = RunJournal(run, "offline")
    messages = [Message(Role.USER, "go")]
    for number in range(1, 61):
        messages.append(Message(Role.TOOL, "".join(chr(33 + (i * i * number) % 90) for i in range(1700))))
        journal.record(CallKey(ActionId(1), number), "solve", Request(tuple(messages)), REPLY, 0.1)
    stored = sum(path.stat().st_size for path in (folder / "traces").rglob("*.z"))
    said = sum(len(encode_request(Request(tuple(messages[:n])))) for n in range(2, 62))
    assert stored < said / 10


def test_shortened_conversation_comes_back_too(run: Run) -> None:
    journal, requests = RunJournal(run, "offline"), conversation(6)
    pruned = Request((requests[5].messages[0], *requests[5].messages[-3:]), (), "other")
    for number, request in enumerate([*requests, pruned], 1):
        journal.record(CallKey(ActionId(1), number), "solve", request, REPLY, 0.5)
    call = run.store.call(1, 7)
    assert call is not None
    assert read_request(run, call.request) == pruned


def test_damaged_reply_is_named_rather_than_paid_again(run: Run, folder: Path) -> None:
    journal = RunJournal(run, "offline")
    journal.record(CallKey(ActionId(1), 1), "solve", conversation(1)[0], REPLY, 0.5)
    shutil.rmtree(folder / "traces")
    with pytest.raises(ArchiveCorrupt, match="missing"):
        journal.recorded(CallKey(ActionId(1), 1))


def test_call_cannot_be_journaled_twice(run: Run) -> None:
    journal, key = RunJournal(run, "offline"), CallKey(ActionId(1), 1)
    journal.record(key, "solve", conversation(1)[0], REPLY, 0.5)
    with pytest.raises(DgmError, match="second time"):
        journal.record(key, "solve", conversation(1)[0], REPLY, 0.5)
    assert run.tree.spend == REPLY.usage


# Lineages


def test_lineage_tells_each_step(run: Run) -> None:
    child = expand(run)
    steps = list(Lineage(run.tree, child).steps(run))
    assert [step.agent.id for step in steps] == [0, child]
    assert steps[0].patch == b""
    assert b"+# 1\n" in steps[1].patch


def test_lineage_verifies_against_refs_and_commits(run: Run) -> None:
    child, other = expand(run), expand(run)
    lineage = Lineage(run.tree, child)
    lineage.verify(run)
    run.repository.name(child, run.tree.agents[other].commit)
    with pytest.raises(ArchiveCorrupt, match=f"agent {child}: its ref"):
        lineage.verify(run)


def test_lineage_with_a_commit_of_other_parents_is_refused(run: Run) -> None:
    orphan = run.repository.commit({"agent.toml": Entry(b"other")}, ())
    run.append(run.birth(Born((SEED,), "op", orphan, "not really"), ActionId(1)))
    with pytest.raises(ArchiveCorrupt, match="agent 1: its commit has parents"):
        Lineage(run.tree, AgentId(1)).verify(run)


def test_unknown_agent_is_the_users_to_mend(run: Run) -> None:
    with pytest.raises(UserError, match="no agent 9; they are 0 to 0"):
        Lineage(run.tree, AgentId(9))
