"""The operator that lets a parent edit itself, and what is asked of it."""

import asyncio
import json

import pytest

from dgm.archive.conversations import thread_of
from dgm.domain import Agent, AgentId, Entry
from dgm.errors import AgentFault
from dgm.messages import Message, Role, ToolCall
from dgm.meta.operators import OperatorContext
from dgm.meta.module import read_statement
from dgm.meta.prompts import Prompts, load_shipped
from dgm.meta.seeds import read_seed
from dgm.meta.self_edit import SelfEdit, rationale
from dgm.protocols import Brief, Completed, JobKind, Member, Work

FACTS = {
    "resolved": 3,
    "evaluations": 9,
    "failures": 6,
    "step_limit": 4,
    "truncated": 2,
    "wrong": 1,
    "crashed": 0,
    "empty": 5,
}


class Bench:
    """Adds a file to the workdir, as an agent would."""

    def __init__(self):
        self.jobs = []

    async def work(self, job):
        self.jobs.append(job)
        said = [thread_of([Message(Role.ASSISTANT, "I changed it.\nRationale: more steps")])]
        return Work({**job.workspace, "new.py": Entry(b"x")}, b"diff", Completed(0, b"log"), said, 3)


def test_the_parent_works_on_its_own_source():
    bench, source = Bench(), read_seed()
    parent = Member(Agent(AgentId(4), (AgentId(0),), "c", "self-edit", "", 7), source)
    operator = SelfEdit(OperatorContext("python", 60.0, Prompts(load_shipped())))
    proposal = asyncio.run(operator.make(Brief([parent], {"README.md": Entry(b"")}, FACTS, 2), bench))
    job = bench.jobs[0]
    assert (job.kind, job.source, job.workspace) == (JobKind.IMPROVE, source, source)
    assert set(proposal.source) == {*source, "new.py"}
    assert proposal.rationale == "more steps"
    for line in ("Child number: 2", "step limit reached: 4 of 6", "empty patch: 5 of 6", "3 of 9 problems"):
        assert line in job.problem
    assert "$" not in job.problem


@pytest.mark.parametrize(
    ("done", "cause"),
    [
        (Completed(137, b"log", out_of_memory=True), "ran out of memory"),
        (Completed(124, b"log", timed_out=True), "ran out of time"),
        (Completed(3, b"log"), "exits 3"),
    ],
)
def test_a_failure_before_any_change_is_the_cause(done, cause):
    class Idle:
        async def work(self, job):
            return Work(job.workspace, b"", done, [], 1)

    parent = Member(Agent(AgentId(4), (AgentId(0),), "c", "self-edit", "", 7), read_seed())
    operator = SelfEdit(OperatorContext("python", 60.0, Prompts(load_shipped())))
    with pytest.raises(AgentFault, match=cause) as caught:
        asyncio.run(operator.make(Brief([parent], {}, FACTS, 2), Idle()))
    assert (caught.value.stage, caught.value.output) == ("unchanged", b"log")


def test_without_a_marked_rationale_the_last_words_count():
    said = [
        Message(Role.ASSISTANT, "thinking"),
        Message(Role.ASSISTANT, "DONE, the limit is higher now\nbye"),
    ]
    assert rationale(said) == "DONE, the limit is higher now"


def test_a_rationale_is_found_where_the_agent_went_on_speaking():
    said = [
        Message(Role.ASSISTANT, "Rationale: more steps"),
        Message(Role.ASSISTANT, "I check that it starts."),
    ]
    assert rationale(said) == "more steps"


@pytest.mark.parametrize(
    "arguments",
    [
        {"message": "Rationale: more steps"},
        {"rationale": "more steps", "general": "on every problem"},
        {"summary": "I am done.\n\n**Rationale:** more steps\nGeneral: on every problem"},
    ],
)
def test_a_rationale_may_stand_in_the_call_that_hands_the_work_in(arguments):
    call = ToolCall("1", "submit", json.dumps(arguments))
    edit = ToolCall("2", "edit", json.dumps({"path": "agent/prompts.py", "new": "Rationale: of the source"}))
    said = [Message(Role.ASSISTANT, "I edit.", (edit,)), Message(Role.ASSISTANT, "", (call,))]
    assert rationale(said) == "more steps"
    assert read_statement(said) in ("", "on every problem")


def test_nothing_said_is_no_rationale():
    assert rationale([Message(Role.USER, "hello")]) == ""
    assert len(rationale([Message(Role.ASSISTANT, "Rationale: " + "x" * 500)])) == 200
