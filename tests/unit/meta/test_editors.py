"""Agents that another agent edits: who works, on what, and what it is told."""

import asyncio

import pytest

from dgm.domain import Agent, AgentId, Entry
from dgm.errors import AgentFault, ArchiveCorrupt
from dgm.meta.operators import OperatorContext
from dgm.meta.contract import read_contract
from dgm.meta.operators import freeze_editor, load_editor, read_editor
from dgm.meta.prompts import Prompts, load_shipped
from dgm.meta.self_edit import SelfEdit
from dgm.meta.vetting import Stages
from dgm.protocols import Brief, JobKind, Member
from tests.unit.meta.test_self_edit import FACTS, Bench

TOML = '[agent]\ncommand = ["sh", "run.sh"]\ncheck = ["sh", "run.sh", "--check"]\n'
PROTECTED = 'editable = ["prompt.md"]\nprotected = ["program/**"]\neditor = "solid"\n'


def agent(more=""):
    return {
        "agent.toml": Entry((TOML + more).encode()),
        "run.sh": Entry(b"true"),
        "prompt.md": Entry(b"Do it."),
    }


def improve(source, editor=None):
    bench = Bench()
    operator = SelfEdit(OperatorContext("python", 60.0, Prompts(load_shipped()), editor=editor))
    parent = Member(Agent(AgentId(4), (AgentId(0),), "c", "self-edit", "", 7), source)
    asyncio.run(operator.make(Brief([parent], {}, FACTS, 2), bench))
    return bench.jobs[-1]


def test_the_editor_works_on_the_agents_source():
    source = agent(PROTECTED)
    job = improve(source)
    assert (job.kind, job.source, job.workspace) == (JobKind.IMPROVE, read_editor("solid"), source)
    assert "The source is in `/work/agent`. Only its files count. It is another agent than you" in job.problem
    assert "- You may change `prompt.md`." in job.problem
    assert "- You may not change `agent.toml`, `program/**`." in job.problem


def test_an_agent_with_bounds_is_told_them_when_it_edits_itself():
    source = agent('editable = ["prompt.md"]\n')
    job = improve(source)
    assert job.source == source
    assert "Only its files count.\n- The check: `cd /work/agent && sh run.sh --check`." in job.problem


def test_an_agent_without_bounds_is_told_nothing_more():
    assert "You may change" not in improve(agent()).problem


def test_the_editor_of_the_beginning_works():
    frozen = {"agent.toml": Entry(b"of the beginning")}
    assert improve(agent(PROTECTED), frozen).source == frozen


def test_a_frozen_editor_is_read_back():
    entry = freeze_editor(agent(PROTECTED))
    assert load_editor(entry, "run.json") == read_editor("solid")
    assert freeze_editor(agent()) == {}
    assert load_editor({}, "run.json") is None


@pytest.mark.parametrize("broken", ["solid", {"agent.toml": 1}])
def test_a_broken_editor_is_named(broken):
    with pytest.raises(ArchiveCorrupt, match=r"^run\.json: its editor is not a table of texts"):
        load_editor({"editor": broken}, "run.json")


def test_an_unknown_editor_is_refused():
    with pytest.raises(AgentFault, match=r"agent\.editor: 'vim' is none of 'self', 'plain', 'solid'"):
        read_contract(agent('editor = "vim"\n'))


def test_a_child_that_another_agent_edits_is_tried_at_solving():
    bench = Bench()

    async def none(*_):
        raise AssertionError

    asyncio.run(Stages(bench, "python", 10.0, (), none).start_improve(agent(PROTECTED)))
    assert (bench.jobs[-1].kind, bench.jobs[-1].workdir) == (JobKind.SOLVE, "/work/repo")
