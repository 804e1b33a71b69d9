"""What an operator is told when it makes a child, from the log to the brief."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from dgm.archive.events import ActionStarted, RunStarted, TaskGraded
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    Cost,
    Entry,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    Tally,
    Task,
    TaskId,
    Verdict,
)
from dgm.errors import AgentFault
from dgm.protocols import Needs, Proposal, SandboxSpec
from dgm.search.prepare import AgentIndex
from dgm.worker.session import Session
from dgm.worker.worker import Worker

pytestmark = pytest.mark.starts_processes

TOML = Entry(b'[agent]\ncommand = ["run"]\ncheck = ["check"]\n')
TASKS = tuple(TaskId(f"task-{n}") for n in range(4))


def source(*numbers):
    return {"agent.toml": TOML, **{f"part{n}.py": Entry(b"%d\n" % n) for n in numbers}}


class Tasks:
    def task(self, task):
        return Task(task, "made-up", f"mend {task}", "python", "/work/t", 60)

    def tasks(self, split):
        return []


class Listening:
    """An operator that keeps what it is told, and proposes what a test wants."""

    name = "listening"

    def __init__(self, child):
        self.child, self.brief = child, None

    async def make(self, brief, bench):
        self.brief = brief
        if isinstance(self.child, AgentFault):
            raise self.child
        return Proposal(self.child, "heard", b"said", stated="it is about no task")


class NoGateway:
    """A child that passes needs a sandbox; these never get so far."""

    @asynccontextmanager
    async def open(self, spec):
        raise AssertionError("no sandbox is needed")
        yield


@pytest.fixture
def run(tmp_path):
    """Agents 1 and 2 are children of the seed, 3 is one of 1; each but 3 has tried two tasks."""
    with Run.create(tmp_path / "run", {}) as made:
        made.append(RunStarted(Budget(), TASKS))
        for parents, files in (((), (0,)), ((0,), (0, 1)), ((0,), (0, 2)), ((1,), (0, 1, 3))):
            commits = [made.tree.agents[parent].commit for parent in parents]
            commit = made.repository.commit(source(*files), commits)
            made.append(made.birth(Born(tuple(map(AgentId, parents)), "op", commit, "why"), ActionId(0)))
        for agent in range(3):
            for task, verdict in ((TASKS[agent], Verdict.RESOLVED), (TASKS[3], Verdict.UNRESOLVED)):
                grade(made, agent, task, verdict)
        yield made


def grade(run, agent, task, verdict):
    action = run.tree.next_action
    run.append(ActionStarted(action, Evaluate(AgentId(agent), task)))
    traces = {"patch": run.traces.put(b"patch of %d" % agent)}
    cost = Cost(traces=traces)
    run.append(TaskGraded(action, Evaluation(AgentId(agent), task, 0, verdict, "because", 0.0, cost)))


def expanded(run, what, child=None, limits=None, vetting=None, **evidence):
    """The outcome of an expansion, and what the operator was told."""
    settings = Settings(evidence=evidence, limits=limits or {}, vetting=vetting or {})
    child = AgentFault("answer", "nothing came of it") if child is None else child
    operator = child if isinstance(child, Listening) else Listening(child)
    action = run.tree.next_action
    run.append(ActionStarted(action, what))
    if TASKS[2] not in run.tree.tried(AgentId(1)):
        grade(run, 1, TASKS[2], Verdict.RESOLVED)  # comes too late to be seen
    session = Session(NoGateway(), None, SandboxSpec("python"), settings.limits)
    worker = Worker(run, session, Tasks(), {"listening": operator}, settings, AgentIndex(run))
    return asyncio.run(worker.perform(action, what)), operator.brief


def test_a_brief_has_the_parent_as_it_stood_when_the_expansion_began(run):
    _, brief = expanded(run, Expand((AgentId(1),), "listening", evidence=(ActionId(3), ActionId(4))))
    (parent,) = brief.parents
    assert (parent.agent.id, parent.source) == (1, source(0, 1))
    assert parent.own == Tally(1, 1)
    assert parent.verdicts == {TASKS[1]: Verdict.RESOLVED, TASKS[3]: Verdict.UNRESOLVED}
    assert b"+++ b/part1.py" in parent.change
    assert [(case.action, case.problem) for case in brief.cases] == [(3, "mend task-1"), (4, "mend task-3")]
    assert brief.facts["evaluations"] == 2
    assert set(brief.evidence) >= {"README.md", "cases/task-1-0/patch.diff", "cases/task-3-0/patch.diff"}
    assert (brief.members, brief.aim, brief.case, brief.ancestor) == ([], "", 0, None)


def test_an_operator_that_needs_an_overview_gets_it_as_of_the_start(run):
    operator = Listening(AgentFault("answer", "nothing came of it"))
    operator.needs = Needs(overview=1)
    _, brief = expanded(run, Expand((AgentId(1),), "listening"), operator)
    rows = [line.split("\t") for line in brief.evidence["archive.tsv"].data.decode().splitlines()]
    assert {row[0]: row[3:5] for row in rows[1:]} == {agent: ["1", "2"] for agent in "012"} | {
        "3": ["0", "0"]
    }


def test_agents_that_are_shown_come_with_their_source_and_cases(run):
    what = Expand(
        (AgentId(3),), "listening", (ActionId(1), ActionId(3)), (AgentId(1), AgentId(0)), "tools", ActionId(3)
    )
    _, brief = expanded(run, what)
    assert [member.agent.id for member in brief.members] == [1, 0]
    assert [member.own for member in brief.members] == [Tally(1, 1), Tally(1, 1)]
    assert (brief.members[0].source, brief.members[1].change) == (source(0, 1), b"")
    assert [(case.evaluation.agent, case.traces["patch"]) for case in brief.cases] == [
        (0, b"patch of 0"),
        (1, b"patch of 1"),
    ]
    assert brief.facts["evaluations"] == 0
    assert brief.evidence["agents/1/cases/task-1-0/patch.diff"] == Entry(b"patch of 1")
    assert brief.evidence["agents/0/source/part0.py"] == source(0)["part0.py"]
    assert not any(path.startswith(("cases/", "agents/3/source/")) for path in brief.evidence)
    assert (brief.aim, brief.case) == ("tools", 3)


def test_what_the_folder_held_is_kept(run):
    outcome, brief = expanded(run, Expand((AgentId(1),), "listening", (ActionId(3),)))
    held = json.loads(run.traces.get(outcome.cost.traces["evidence"]))
    assert held["cases/task-1-0/patch.diff"]["bytes"] == len(b"patch of 1")
    assert held.keys() == brief.evidence.keys()
    outcome, _ = expanded(run, Expand((AgentId(3),), "listening"))
    assert "evidence" not in outcome.cost.traces


def test_traces_that_programs_read_back_are_never_cut(run):
    what = Expand((AgentId(1),), "listening", (ActionId(3),))
    outcome, brief = expanded(run, what, source(0, 1, 3), {"patch_bytes": 20})
    kept = outcome.cost.traces
    assert json.loads(run.traces.get(kept["evidence"])).keys() == brief.evidence.keys()
    assert json.loads(run.traces.get(kept["vetting"]))["stages"][-1]["result"] == "failed"


@pytest.mark.parametrize(("parents", "ancestor"), [((3, 2), (0,)), ((2, 3), (0,)), ((3, 1), (0, 1))])
def test_two_parents_come_with_their_common_ancestor(run, parents, ancestor):
    _, brief = expanded(run, Expand(tuple(map(AgentId, parents)), "listening"))
    assert tuple(parent.agent.id for parent in brief.parents) == parents
    assert brief.ancestor == source(*ancestor)


def test_what_an_operator_finds_wrong_makes_a_stillborn_child(run):
    outcome, _ = expanded(run, Expand((AgentId(1),), "listening"))
    assert isinstance(outcome, Stillborn)
    assert (outcome.parents, outcome.stage, outcome.reason) == ((1,), "answer", "nothing came of it")


def test_what_was_said_of_a_child_is_kept_where_vetting_stops_it(run):
    outcome, _ = expanded(run, Expand((AgentId(1),), "listening"), source(0, 1, 3))
    assert (outcome.stage, outcome.reason) == ("duplicate", "the same content as agent 3")
    assert run.traces.get(outcome.cost.traces["log"]) == b"said"
    assert run.traces.get(outcome.cost.traces["statement"]) == b"it is about no task"


@pytest.mark.parametrize(
    ("changes", "stage", "reason"),
    [
        ({"part3.py": Entry(b"3\n", 0o100664)}, "duplicate", "agent 3"),
        ({"part3.py": Entry(b"3\n", 0o160000)}, "patch", "neither a file nor a link"),
        ({"part3.py": Entry(b""), "part3.py/b": Entry(b"")}, "patch", "both a file and a folder"),
    ],
)
def test_a_source_that_git_does_not_hold_is_the_childs_fault_without_its_stage_of_vetting(
    run, changes, stage, reason
):
    child = {**source(0, 1), **changes}
    outcome, _ = expanded(run, Expand((AgentId(1),), "listening"), child, vetting={"patch": False})
    assert outcome.stage == stage
    assert reason in outcome.reason
