"""The operator that lets a parent edit itself, and the agents that another one edits."""

import asyncio
import json

import pytest

from dgm.domain import Entry
from dgm.errors import AgentFault, ArchiveCorrupt
from dgm.messages import Message, Role, ToolCall
from dgm.meta.contract import read_contract
from dgm.meta.operators import freeze_editor, load_editor, read_editor
from dgm.meta.self_edit import SelfEdit, rationale
from dgm.meta.task_words import find_statement
from dgm.meta.vetting import DryRuns
from dgm.protocols import Completed, JobKind
from tests.unit.meta.making import SEED, Bench, brief, make, member


def test_the_parent_works_on_its_own_source():
    bench = Bench()
    proposal = make(SelfEdit, bench, brief())
    (job,) = bench.jobs
    assert (job.kind, job.source, job.workspace) == (JobKind.IMPROVE, SEED, SEED)
    assert (set(proposal.source), proposal.rationale) == ({*SEED, "new.py"}, "more steps")
    for line in ("Child number: 2", "step limit reached: 6 of 5", "empty patch: 10 of 5", "3 of 4 problems"):
        assert line in job.problem
    assert "$" not in job.problem
    assert "You may change" not in job.problem


@pytest.mark.parametrize(
    ("done", "cause"),
    [
        (Completed(137, b"log", out_of_memory=True), "ran out of memory"),
        (Completed(124, b"log", timed_out=True), "ran out of time"),
        (Completed(3, b"log"), "exits 3"),
    ],
)
def test_a_failure_before_any_change_is_the_cause(done, cause):
    with pytest.raises(AgentFault, match=cause) as caught:
        make(SelfEdit, Bench(done=done, edit=lambda files: files), brief())
    assert (caught.value.stage, caught.value.output) == ("unchanged", b"log")
    assert make(SelfEdit, Bench(done=done), brief()).log == b"log"


def say(*texts):
    return [Message(Role.ASSISTANT, text) for text in texts]


@pytest.mark.parametrize(
    ("conversation", "words"),
    [
        (say("thinking", "DONE, the limit is higher now\nbye"), "DONE, the limit is higher now"),
        (say("Rationale: more steps", "I check that it starts."), "more steps"),
        ([Message(Role.USER, "Rationale: not the agent's")], ""),
        (say("Rationale: " + "x" * 500), "x" * 200),
    ],
)
def test_a_rationale_is_marked_or_the_last_words(conversation, words):
    assert rationale(conversation) == words


@pytest.mark.parametrize(
    ("arguments", "general"),
    [
        ({"message": "Rationale: more steps"}, ""),
        ({"rationale": "more steps", "general": "on every problem"}, "on every problem"),
        ({"summary": "Done.\n\n**Rationale:** more steps\nGeneral: on every problem"}, "on every problem"),
    ],
)
def test_a_rationale_may_stand_in_the_call_that_hands_the_work_in(arguments, general):
    call = ToolCall("1", "submit", json.dumps(arguments))
    edit = ToolCall("2", "edit", json.dumps({"path": "agent/prompts.py", "new": "Rationale: of the source"}))
    messages = [Message(Role.ASSISTANT, "I edit.", (edit,)), Message(Role.ASSISTANT, "", (call,))]
    assert rationale(messages) == "more steps"
    assert find_statement(messages, "General") == general


TOML = '[agent]\ncommand = ["sh", "run.sh"]\ncheck = ["sh", "run.sh", "--check"]\n'
EDITED = 'editable = ["prompt.md"]\nprotected = ["program/**"]\neditor = "solid"\n'


def agent(more=""):
    texts = {"agent.toml": TOML + more, "run.sh": "true", "prompt.md": "Do it."}
    return {path: Entry(text.encode()) for path, text in texts.items()}


def improve(source, **more):
    bench = Bench()
    make(SelfEdit, bench, brief(member(4, source), evidence={}), **more)
    return bench.jobs[0]


def test_the_editor_works_on_the_agents_source_within_its_bounds():
    source = agent(EDITED)
    job = improve(source)
    assert (job.kind, job.source, job.workspace) == (JobKind.IMPROVE, read_editor("solid"), source)
    assert "The source is in `/work/agent`. Only its files count. It is another agent than you" in job.problem
    assert "- You may change `prompt.md`." in job.problem
    assert "- You may not change `agent.toml`, `program/**`." in job.problem
    frozen = {"agent.toml": Entry(b"of the beginning")}
    assert improve(source, editor=frozen).source == frozen
    alone = improve(agent('editable = ["prompt.md"]\n'))
    assert alone.source == alone.workspace
    assert "Only its files count.\n- The check: `cd /work/agent && sh run.sh --check`." in alone.problem


def test_a_frozen_editor_is_read_back_or_named():
    assert load_editor(freeze_editor(agent(EDITED)), "run.json") == read_editor("solid")
    assert (freeze_editor(agent()), load_editor({}, "run.json")) == ({}, None)
    for broken in ("solid", {"agent.toml": 1}):
        with pytest.raises(ArchiveCorrupt, match=r"^run\.json: its editor is not a table of texts"):
            load_editor({"editor": broken}, "run.json")
    with pytest.raises(AgentFault, match=r"agent\.editor: 'vim' is none of 'self', .*'plain', .*'solid'"):
        read_contract(agent('editor = "vim"\n'))


def test_a_child_that_another_agent_edits_is_tried_at_solving():
    bench = Bench()
    asyncio.run(DryRuns(bench, "python", 10.0).start_improve(agent(EDITED)))
    assert (bench.jobs[0].kind, bench.jobs[0].workdir) == (JobKind.SOLVE, "/work/repo")
