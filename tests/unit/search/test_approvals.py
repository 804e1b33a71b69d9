"""Children that wait for a person: the search goes on, and yes, no and a time-out do it, also after a crash."""

import asyncio
import logging

import pytest

from dgm.analysis.budgets import Reason
from dgm.archive.adopt import verify
from dgm.archive.events import AgentBorn, AgentStillborn, ChildProposed, RunStarted, TaskGraded
from dgm.archive.live import (
    ANSWER_BYTES,
    APPROVALS,
    ApprovalAnswer,
    UnreadableApproval,
    put_answer,
    read_answer,
)
from dgm.archive.packed import unpack
from dgm.archive.run import Run
from dgm.domain import ActionId, AgentId, Born, Budget, Entry
from dgm.errors import ArchiveCorrupt
from dgm.exports.pack import pack
from dgm.search.loop import Search
from dgm.search.prepare import RunController
from tests.support.runs.approving import (
    NOBODY,
    Killed,
    Maker,
    Plan,
    answering,
    events,
    founded,
    killed_at,
    left_over,
    searched,
    settings,
)
from tests.support.runs.trees import TASKS

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def run(tmp_path):
    with founded(tmp_path / "run") as made:
        yield made


def test_the_search_goes_on_while_children_wait_and_each_answer_does_what_it_says(run):
    answers = {ActionId(1): ApprovalAnswer(True), ActionId(2): ApprovalAnswer(False, "it only renames")}
    over, worker = searched(run, 2, answering(run, answers))
    assert over.reason is Reason.GOAL
    asked = [n for n, e in enumerate(run.store.read()) if isinstance(e.event, ChildProposed)]
    ended = [
        n
        for n, e in enumerate(run.store.read())
        if isinstance(e.event, AgentBorn | AgentStillborn) and e.event.action
    ]
    graded = [n for n, e in enumerate(run.store.read()) if isinstance(e.event, TaskGraded)]
    assert len(asked) == len(ended) == 2
    assert sum(asked[-1] < n < ended[0] for n in graded) >= 4
    born, dead = run.tree.agents[1], events(run, AgentStillborn)[0].outcome
    assert (born.action, born.rationale) == (1, "child 1")
    assert events(run, AgentBorn)[1].decided == "a person"
    assert (dead.stage, dead.reason, dead.decided) == ("rejected", "it only renames", "a person")
    assert run.repository.refs()[AgentId(1)] == born.commit
    assert {e.outcome.agent for e in events(run, TaskGraded)} == {0, 1}
    assert left_over(run) == ([], {})
    assert worker.seen == sorted(worker.seen)


def test_what_is_asked_about_lies_in_the_runs_folder(run):
    def look(recorded):
        if isinstance(recorded.event, ChildProposed):
            diff = (run.folder / APPROVALS / "1.diff").read_bytes()
            assert b"-seed\n+1\n" in diff
            assert run.repository.waiting_refs() == {1: recorded.event.outcome.commit}
            put_answer(run.folder, ActionId(1), ApprovalAnswer(True))

    searched(run, 1, look)
    assert len(run.tree.agents) == 2


@pytest.mark.parametrize(("on_timeout", "agents"), [("reject", 1), (None, 1), ("accept", 2)])
def test_a_child_that_nobody_answers_for_in_time(run, on_timeout, agents):
    began = []

    def now():
        since = [one.since for one in run.tree.waiting.values()]
        began.append(len(began))
        return min(since, default=0.0) + (0.0 if len(began) < 6 else 31.0)

    over, _ = searched(run, 1, now=now, approve_s=30.0, **({"on_timeout": on_timeout} if on_timeout else {}))
    assert len(run.tree.agents) == agents
    assert not run.tree.waiting
    last = events(run, AgentBorn, AgentStillborn)[-1]
    if agents == 2:
        assert (over.reason, last.decided) == (Reason.GOAL, "time-out")
    else:
        dead = last.outcome
        assert (dead.stage, dead.decided) == ("expired", "time-out")
        assert dead.reason == "nobody answered within 30 s"


def test_an_answer_in_time_counts_though_it_is_read_late(run):
    def hear(recorded):
        if isinstance(recorded.event, ChildProposed):
            put_answer(run.folder, ActionId(1), ApprovalAnswer(True))

    searched(run, 1, hear, now=lambda: 1e12, approve_s=1.0)
    assert events(run, AgentBorn)[-1].decided == "a person"


def test_a_search_with_nothing_else_to_do_waits_for_the_answer(run):
    run.append(RunStarted(Budget(evaluations=100), TASKS))
    asked = []

    def now():
        asked.append(1)
        if len(asked) == 40:
            put_answer(run.folder, ActionId(1), ApprovalAnswer(False))
        return 0.0

    over, _ = searched(run, 1, now=now)
    assert over.reason is Reason.NOTHING_LEFT
    assert run.tree.evaluations == len(TASKS)
    assert run.tree.stillborn == {"rejected": 1}


def test_a_search_that_waits_ends_when_its_time_is_over(run):
    run.append(RunStarted(Budget(evaluations=100, seconds=50.0), TASKS))

    def now():
        return run.tree._watch.last + (60.0 if run.tree.evaluations == len(TASKS) else 0.0)

    over, _ = searched(run, 1, now=now)
    assert over.reason is Reason.LIMIT
    assert "children still wait" in over.message
    assert list(run.tree.waiting) == [1]


def test_asked_to_stop_it_leaves_the_children_waiting_for_the_next_session(run):
    async def stopped():
        made = Search(RunController(run, settings()), Plan(1), Maker(run), settings())
        run.append(RunStarted(Budget(evaluations=100), TASKS))
        going = asyncio.create_task(made.go())
        while run.tree.evaluations < len(TASKS):
            await asyncio.sleep(0.01)
        made.ask_to_stop("as asked")
        return await asyncio.wait_for(going, 300)

    assert asyncio.run(stopped()).reason is Reason.STOPPED
    put_answer(run.folder, ActionId(1), ApprovalAnswer(True))
    searched(run, 1)
    assert len(run.tree.agents) == 2
    assert not run.tree.waiting


MOMENTS = [
    "after the ref",
    "after the diff",
    "before the answer is recorded",
    "after the agent's ref",
    "before it is tidied",
]


@pytest.mark.parametrize("yes", [True, False])
@pytest.mark.parametrize(
    "moment",
    MOMENTS,
)
def test_nothing_is_lost_or_done_twice_whenever_the_process_dies(run, moment, yes):
    asks = moment in ("after the ref", "after the diff")
    folder = run.folder

    def hear(recorded):
        if isinstance(recorded.event, ChildProposed):
            put_answer(folder, ActionId(1), ApprovalAnswer(yes, "said once"))
            killed_at(run, moment, patched)

    with pytest.MonkeyPatch.context() as patched:
        if asks:
            killed_at(run, moment, patched)
        if moment == "after the agent's ref" and not yes:
            searched(run, 1, hear)
        else:
            with pytest.raises(Killed):
                searched(run, 1, hear)
    run.close()
    with Run.open(folder, write=True) as again:
        if asks:
            assert list(again.tree.pending) == [1]
            put_answer(folder, ActionId(1), ApprovalAnswer(yes, "said once"))
        over, _ = searched(again, 1)
        assert over.reason in (Reason.GOAL, Reason.NOTHING_LEFT)
        ends = [e for e in events(again, AgentBorn, AgentStillborn) if e.action]
        assert len(ends) == 1
        assert isinstance(ends[0], AgentBorn) is yes
        assert left_over(again) == ([], {})
        assert verify(folder)["agents"] == 1 + yes


@pytest.mark.parametrize(("numbers", "born"), [([], True), ([99], False)])
def test_an_answer_from_before_a_crash_is_only_taken_for_the_child_that_it_was_for(run, numbers, born):
    with pytest.MonkeyPatch.context() as patched:
        killed_at(run, "after the diff", patched)
        with pytest.raises(Killed):
            searched(run, 1)
    run.append(RunStarted(Budget(evaluations=3), TASKS))
    put_answer(run.folder, ActionId(1), ApprovalAnswer(True))
    searched(run, 1, numbers=numbers)
    assert [agent.rationale for agent in run.tree.agents[1:]] == (["child 1"] if born else [])
    assert list(run.tree.waiting) == ([] if born else [1])


def test_of_two_twins_that_were_made_at_once_the_second_is_not_even_asked_about(run):
    searched(run, 2, answering(run, {ActionId(1): ApprovalAnswer(True)}), numbers=[7, 7])
    dead = events(run, AgentStillborn)[0].outcome
    assert (dead.stage, dead.reason) == (
        "duplicate",
        "the same content as the child of action 1, which was there first",
    )
    assert len(run.tree.agents) == 2


def test_a_twin_that_was_born_meanwhile_is_not_born_again(run):
    answers = {ActionId(1): ApprovalAnswer(True), ActionId(2): ApprovalAnswer(True)}

    def hear(recorded):
        answering(run, answers, 0)(recorded)
        if isinstance(recorded.event, ChildProposed) and recorded.event.action == 2:
            commit = run.tree.waiting[ActionId(2)].child.commit
            run.append(run.birth(Born((AgentId(0),), "by hand", commit, ""), ActionId(0)))

    searched(run, 2, hear)
    dead = events(run, AgentStillborn)[0].outcome
    assert (dead.stage, dead.decided) == ("duplicate", "a person")


@pytest.mark.parametrize("text", [b"", b"\n \n", b"maybe\n", b"\xff\xfe\x00", b"yes" * ANSWER_BYTES])
def test_a_file_that_is_no_answer_is_said_once_and_changes_nothing(run, text, caplog):
    def hear(recorded):
        if isinstance(recorded.event, ChildProposed):
            (run.folder / APPROVALS / "1").write_bytes(text)
        if run.tree.evaluations == 9:
            (run.folder / APPROVALS / "1").write_text("No, thanks: not this one\n")

    with caplog.at_level(logging.WARNING, "dgm.search.prepare"):
        searched(run, 1, hear)
    assert len(caplog.records) == (1 if text.strip() else 0)
    dead = events(run, AgentStillborn)[0].outcome
    assert (dead.stage, dead.reason) == ("rejected", "thanks: not this one")


def test_answers_are_read_whatever_way_a_person_writes_them(tmp_path):
    (tmp_path / APPROVALS).mkdir()
    for text, answer in {
        "yes": ApprovalAnswer(True),
        "YES, it is\ngood\n": ApprovalAnswer(True, "it is good"),
        "no. Why?": ApprovalAnswer(False, "Why?"),
        "yes".ljust(ANSWER_BYTES): ApprovalAnswer(True),
    }.items():
        (tmp_path / APPROVALS / "3").write_text(text)
        assert read_answer(tmp_path, ActionId(3)) == answer
    assert read_answer(tmp_path, ActionId(4)) is None
    (tmp_path / APPROVALS / "5").mkdir()
    with pytest.raises(UnreadableApproval, match="not a file"):
        read_answer(tmp_path, ActionId(5))
    put_answer(tmp_path, ActionId(6), ApprovalAnswer(False, "two\nlines \udcff"))
    assert read_answer(tmp_path, ActionId(6)) == ApprovalAnswer(False, "two lines ?")


def test_a_reason_of_any_length_is_taken(tmp_path):
    put_answer(tmp_path, ActionId(1), ApprovalAnswer(True, "very " * ANSWER_BYTES + "good"))
    assert read_answer(tmp_path, ActionId(1)) == ApprovalAnswer(True, ("very " * 60)[:299])


def stopped_with_one_waiting(run):
    run.append(RunStarted(Budget(evaluations=3), TASKS))
    searched(run, 1)
    assert list(run.tree.waiting) == [1]


def test_a_run_is_packed_and_unpacked_with_its_waiting_children(tmp_path, run):
    stopped_with_one_waiting(run)
    pack(run.folder, tmp_path / "a.dgm", NOBODY)
    unpack(tmp_path / "a.dgm", tmp_path / "back")
    with Run.open(tmp_path / "back", write=True) as back:
        assert dict(back.tree.waiting) == dict(run.tree.waiting)
        assert RunController(back, settings()).answered(0.0) is None
        assert (back.folder / APPROVALS / "1.diff").read_bytes() == (
            run.folder / APPROVALS / "1.diff"
        ).read_bytes()
        put_answer(back.folder, ActionId(1), ApprovalAnswer(True))
        back.append(RunStarted(Budget(evaluations=5), TASKS))
        searched(back, 1)
        assert len(back.tree.agents) == 2
        assert back.repository.source(back.tree.agents[1].commit) == {"agent.py": Entry(b"1\n")}
    verify(tmp_path / "back")


def test_a_waiting_child_without_its_ref_is_found_by_verify(run):
    stopped_with_one_waiting(run)
    verify(run.folder)
    run.repository.forget_waiting(ActionId(1))
    with pytest.raises(ArchiveCorrupt, match="the child of action 1: its ref is None"):
        verify(run.folder)
