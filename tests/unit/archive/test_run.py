import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dgm.analysis.agents import trace_lineage
from dgm.archive.adopt import check_descent
from dgm.archive.durable import make_runs_folder
from dgm.archive.events import ActionStarted, RunStarted, TaskGraded
from dgm.archive.finding import archive_folders, find_run
from dgm.archive.journal import dump, request_record
from dgm.archive.run import PAUSE_EVENTS, Run, merge_tables
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
from dgm.errors import ArchiveCorrupt, DgmError, UserError
from dgm.gateway.journal import RunJournal
from dgm.messages import (
    CallKey,
    Exchange,
    Message,
    Native,
    PaidCall,
    Reply,
    Request,
    Role,
    Stop,
    Tool,
    ToolCall,
)
from dgm.views.agents import LineageView

pytestmark = pytest.mark.slow


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


@pytest.mark.starts_processes
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


def test_reader_that_is_far_behind_follows_in_steps(run: Run, folder: Path) -> None:
    with Run.open(folder) as reader:
        began = reader.tree.seq
        run.append_many([ActionStarted(ActionId(n), Evaluate(SEED, TaskId(f"t{n}"))) for n in range(1, 6)])
        assert [item.seq - began for item in reader.follow(most=2)] == [1, 2]
        assert [item.seq - began for item in reader.follow(most=2)] == [3, 4]
        assert [item.seq - began for item in reader.follow()] == [5]
        assert list(reader.tree.pending) == [1, 2, 3, 4, 5]


def test_outcome_of_an_action_is_found(run: Run) -> None:
    run.append(ActionStarted(ActionId(1), Evaluate(SEED, TaskId("a"))))
    assert run.outcome(ActionId(1)) is None
    recorded = run.append(TaskGraded(ActionId(1), Evaluation(SEED, TaskId("a"), 0, Verdict.UNRESOLVED, "no")))
    assert run.outcome(ActionId(1)) == recorded


def test_existing_run_is_not_made_again(run: Run, folder: Path) -> None:
    with pytest.raises(UserError, match="already exists"):
        Run.create(folder, {})


@pytest.mark.parametrize(
    ("work_tree", "present", "ignored"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_git_ignores_a_new_folder_of_runs(
    tmp_path: Path, work_tree: bool, present: bool, ignored: bool
) -> None:
    archive = tmp_path / "repository" / "archive"
    (archive if present else archive.parent).mkdir(parents=True)
    if work_tree:
        (archive.parent / ".git").mkdir()
    make_runs_folder(archive)
    assert [path.name for path in archive.iterdir()] == [".gitignore"] * ignored
    assert not ignored or (archive / ".gitignore").read_text() == "*\n"


def test_left_over_of_a_killed_creation_is_replaced(folder: Path) -> None:
    draft = folder.with_name(".first.new")
    draft.mkdir(parents=True)
    (draft / "run.db").write_text("half")
    with Run.create(folder, {}) as run:
        assert run.store.last == 0
    assert not draft.exists()


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("{", ArchiveCorrupt, r"run\.json: not what dgm wrote"),
        ("[]", ArchiveCorrupt, r"run\.json: not what dgm wrote"),
        ('{"format": 1, "config": {"kind": ["x"]}}', ArchiveCorrupt, r"run\.json: its kind is unknown"),
        ('{"format": 1, "config": {"settings": {"policy": "hgm"}}}', ArchiveCorrupt, "policy is no table"),
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


def test_missing_setting_is_named(run: Run, folder: Path) -> None:
    run.close()
    frozen = json.loads((folder / "run.json").read_text())
    frozen["config"]["settings"] = {"seed": 1}
    (folder / "run.json").write_text(json.dumps(frozen))
    with Run.open(folder) as opened, pytest.raises(ArchiveCorrupt, match=r"settings has no 'workers'"):
        opened.settings()["workers"]


def test_missing_events_are_not_made_up(run: Run, folder: Path) -> None:
    run.close()
    (folder / "run.db").unlink()
    with pytest.raises(ArchiveCorrupt, match=r"run\.db: missing"):
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


def test_a_tilde_that_no_shell_has_read_is_the_users_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert list(archive_folders(tmp_path, {"DGM_ARCHIVE": "~/runs"})) == [
        tmp_path / "home" / "runs",
        tmp_path / "archive",
    ]


def test_the_home_of_an_unknown_user_is_refused():
    with pytest.raises(UserError, match="DGM_ARCHIVE=~no-such-user/runs: "):
        list(archive_folders(Path(), {"DGM_ARCHIVE": "~no-such-user/runs"}))


# The journal


def conversation(turns: int) -> list[Request]:
    tools = (Tool("bash", "runs a command", {"type": "object"}),)
    messages = [Message(Role.SYSTEM, "be brief"), Message(Role.USER, "mend it \udcff")]
    requests = []
    for turn in range(turns):
        requests.append(Request(tuple(messages), tools, "m", 0.0, 100))
        messages.append(Message(Role.ASSISTANT, "", (ToolCall(f"c{turn}", "bash", '{"command": "ls"}'),)))
        messages.append(Message(Role.TOOL, f"output {turn} " * 50, call_id=f"c{turn}", failed=turn % 2 == 1))
    requests[-1] = replace(
        requests[-1], top_p=0.5, stop=("END",), tool_choice="tool:bash", parallel=False, effort="high"
    )
    return requests


REPLY = Reply(
    "done",
    (ToolCall("c", "bash", "{}"),),
    Stop.TOOL_CALLS,
    Usage(1, 10, 2, 0.125, 4, 3, 1),
    "because",
    Native("anthropic", '[{"type":"thinking"}]'),
)


def paid(number: int, request: Request, seconds: float = 0.5) -> PaidCall:
    return PaidCall(CallKey(ActionId(1), number), "offline", "solve", request, REPLY, seconds)


def test_paid_reply_is_found_again_after_a_restart(run: Run, folder: Path) -> None:
    asyncio.run(RunJournal(run).record(paid(1, conversation(1)[0])))
    run.close()
    with Run.open(folder) as again:
        journal = RunJournal(again)
        assert journal.recall(ActionId(1), range(99))[0] == [Exchange(1, conversation(1)[0], REPLY)]
        assert journal.recall(ActionId(2), range(99))[0] == []
        assert again.tree.spend == REPLY.usage


def test_every_request_of_a_long_conversation_comes_back(run: Run) -> None:
    journal, requests = RunJournal(run), conversation(80)
    for number, request in enumerate(requests, 1):
        asyncio.run(journal.record(paid(number, request)))
    assert [exchange.request for exchange in journal.recall(ActionId(1), range(99))[0]] == requests


def test_long_conversation_takes_little_more_than_its_messages(run: Run, folder: Path) -> None:
    journal = RunJournal(run)
    messages = [Message(Role.USER, "go")]
    for number in range(1, 61):
        messages.append(Message(Role.TOOL, "".join(chr(33 + (i * i * number) % 90) for i in range(1700))))
        asyncio.run(journal.record(paid(number, Request(tuple(messages)))))
    ((stored,),) = run.store.query("SELECT sum(length(request)) FROM calls")
    said = sum(len(dump(request_record(Request(tuple(messages[:n]))))) for n in range(2, 62))
    assert stored < said / 10


def test_shortened_conversation_comes_back_too(run: Run) -> None:
    journal, requests = RunJournal(run), conversation(6)
    pruned = Request((requests[5].messages[0], *requests[5].messages[-3:]), (), "other")
    for number, request in enumerate([*requests, pruned], 1):
        asyncio.run(journal.record(paid(number, request)))
    assert journal.recall(ActionId(1), range(99))[0][6].request == pruned


def test_damaged_reply_is_named_rather_than_paid_again(run: Run, folder: Path) -> None:
    journal = RunJournal(run)
    asyncio.run(journal.record(paid(1, conversation(1)[0])))
    run.commit([], lambda log: log.execute("UPDATE calls SET reply = NULL"))
    with pytest.raises(ArchiveCorrupt, match="call 1: its reply"):
        journal.recall(ActionId(1), range(99))


def test_call_cannot_be_journaled_twice(run: Run) -> None:
    journal = RunJournal(run)
    asyncio.run(journal.record(paid(1, conversation(1)[0])))
    with pytest.raises(DgmError, match="second time"):
        asyncio.run(journal.record(paid(1, conversation(1)[0])))
    assert run.tree.spend == REPLY.usage


def test_calls_that_end_together_are_all_found_again(run: Run) -> None:
    journal, requests = RunJournal(run), conversation(40)

    async def at_once() -> None:
        await asyncio.gather(*(journal.record(paid(n, request)) for n, request in enumerate(requests, 1)))

    asyncio.run(at_once())
    assert [exchange.request for exchange in journal.recall(ActionId(1), range(99))[0]] == requests
    assert [call.number for call in run.store.calls(ActionId(1))] == list(range(1, 41))
    assert run.tree.seq == run.store.last


def test_call_that_cannot_be_journaled_takes_no_other_with_it(run: Run) -> None:
    journal, requests = RunJournal(run), conversation(3)

    async def at_once() -> list[BaseException | None]:
        numbered = zip((1, 2, 1), requests, strict=True)
        calls = (journal.record(paid(number, request)) for number, request in numbered)
        return await asyncio.gather(*calls, return_exceptions=True)

    first, second, third = asyncio.run(at_once())
    assert (first, second) == (None, None)
    assert isinstance(third, DgmError)
    assert [exchange.request for exchange in journal.recall(ActionId(1), range(99))[0]] == requests[:2]


def test_call_is_journaled_even_if_its_caller_is_gone(run: Run) -> None:
    journal = RunJournal(run)

    async def cancelled() -> None:
        recording = asyncio.create_task(journal.record(paid(1, conversation(1)[0])))
        await asyncio.sleep(0)
        recording.cancel()
        with pytest.raises(asyncio.CancelledError):
            await recording
        assert len(journal.recall(ActionId(1), range(99))[0]) == 1

    asyncio.run(cancelled())


def test_program_that_ends_waits_for_no_call_that_cannot_be_journaled_any_more(run: Run) -> None:
    journal, requests = RunJournal(run), conversation(40)

    async def interrupted() -> None:
        for number, request in enumerate(requests, 1):
            asyncio.get_running_loop().create_task(journal.record(paid(number, request)))
        await asyncio.sleep(0)

    asyncio.run(interrupted())
    assert len(journal.recall(ActionId(1), range(99))[0]) == run.tree.spend.calls


def test_opening_pauses_after_every_so_many_events(run: Run, folder: Path) -> None:
    run.append_many(
        [RunStarted(Budget(evaluations=5), (), resumed=True)] * (2 * PAUSE_EVENTS - run.store.last)
    )
    pauses: list[int] = []
    with Run.open(folder, pause=lambda: pauses.append(1)):
        assert len(pauses) == 2


# Lineages


@pytest.mark.starts_processes
def test_lineage_tells_each_step(run: Run) -> None:
    child = expand(run)
    seed, step = LineageView.load(run, child).lineage
    assert (seed.agent, seed.patch, step.agent) == (0, "", child)
    assert "+# 1\n" in step.patch


@pytest.mark.starts_processes
def test_descent_is_checked_against_refs_and_commits(run: Run) -> None:
    child, other = expand(run), expand(run)
    check_descent(run)
    for agent, foreign in ((child, other), (other, child)):
        run.repository.name(agent, run.tree.agents[foreign].commit)
        with pytest.raises(ArchiveCorrupt, match=f"agent {agent}: its ref"):
            check_descent(run)
        run.repository.name(agent, run.tree.agents[agent].commit)
    check_descent(run)


@pytest.mark.starts_processes
def test_descent_with_a_commit_of_other_parents_is_refused(run: Run) -> None:
    orphan = run.repository.commit({"agent.toml": Entry(b"other")}, ())
    run.append(run.birth(Born((SEED,), "op", orphan, "not really"), ActionId(1)))
    with pytest.raises(ArchiveCorrupt, match="agent 1: its commit has parents"):
        check_descent(run)


def test_later_settings_replace_values_and_are_merged_into_tables() -> None:
    base = {"workers": 1, "budget": {"usd": 5.0, "agents": 9}, "tools": ["a", "b"]}
    over = {"budget": {"usd": 7.0}, "tools": ["c"], "seed": 3}
    merged = {"workers": 1, "budget": {"usd": 7.0, "agents": 9}, "tools": ["c"], "seed": 3}
    assert merge_tables(base, over) == merged
    assert base["budget"] == {"usd": 5.0, "agents": 9}


def test_unknown_agent_is_the_users_to_mend(run: Run) -> None:
    with pytest.raises(UserError, match="no agent 9; they are 0 to 0"):
        trace_lineage(run.tree, AgentId(9))
