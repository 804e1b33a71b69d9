"""The operator that puts several agents side by side and lets one of them implement what comes of it."""

import asyncio
import json

import pytest

from dgm.domain import ActionId, Agent, AgentId, Entry, Tally, TaskId, Verdict
from dgm.errors import AgentFault
from dgm.meta.issue import ROWS, Compare
from dgm.meta.operators import OperatorContext
from dgm.meta.prompts import Prompts, load_shipped
from dgm.offline import decide
from dgm.offline.improve import kinds
from dgm.protocols import Brief, Member
from tests.unit.meta.test_diagnose import FACTS, ISSUE, SEED, Bench, case

YES, NO = Verdict.RESOLVED, Verdict.UNRESOLVED


def member(number, rationale="", change=b"", **verdicts):
    agent = Agent(AgentId(number), (AgentId(0),), "c", "self-edit", rationale, ActionId(7))
    own = Tally(sum(v is YES for v in verdicts.values()), sum(v is NO for v in verdicts.values()))
    return Member(agent, SEED, own, {TaskId(task): verdict for task, verdict in verdicts.items()}, change)


ME = member(4, a=NO, b=NO, c=YES)
GOOD = member(
    6, "Runs end at the step limit: allow more steps. (more-steps)", b"+MAX_STEPS = 20", a=NO, b=YES
)
BAD = member(5, "Show less.", b"+ a bad change", a=NO, c=NO)
CASES = [
    case("a", action=1, conversation=b"I failed at a"),
    case("b", action=2, conversation=b"I failed at b", patch=b"my patch of b"),
    case("c", YES, action=3, conversation=b"I solved c"),
    case("b", YES, agent=6, action=4, conversation=b"it solved b so", patch=b"its patch of b"),
    case("c", NO, agent=5, action=5, conversation=b"it failed at c"),
]


def make(bench, cases=tuple(CASES), members=(BAD, GOOD), me=ME):
    told = Brief([me], {"README.md": Entry(b"")}, FACTS, 2, cases=cases, members=members)
    return asyncio.run(Compare(OperatorContext("python", 60.0, Prompts(load_shipped()))).make(told, bench))


def test_what_a_relative_solves_and_the_agent_does_not_is_shown_side_by_side():
    bench = Bench(ISSUE)
    proposal = make(bench)
    system, asked = bench.asked[0].messages
    assert system.text.startswith("You compare coding agents.")
    assert "\nproblem | agent 4 | agent 5 | agent 6\nb | unresolved | - | resolved\n" in asked.text
    for shown in (
        "I failed at b",
        "my patch of b",
        "I solved c",
        "it solved b so",
        "its patch of b",
        "+MAX_STEPS = 20",
    ):
        assert shown in asked.text
    for hidden in ("I failed at a", "it failed at c", "+ a bad change"):
        assert hidden not in asked.text
    assert "--- agent/loop.py" in asked.text
    assert "\nProposal: allow more steps\n" in bench.jobs[0].problem
    assert proposal.rationale == "more steps"


def test_an_agent_without_relatives_is_compared_with_itself():
    bench = Bench(ISSUE)
    make(bench, CASES[:3], ())
    assert "I failed at a" in bench.asked[0].messages[1].text
    assert "I solved c" in bench.asked[0].messages[1].text


def test_an_agent_that_has_failed_at_nothing_has_no_issue():
    with pytest.raises(AgentFault, match="failed at nothing") as caught:
        make(Bench(), CASES[2:])
    assert caught.value.stage == "evidence"


def test_of_many_tasks_those_on_which_agents_differ_are_shown():
    many = {f"task_{n}": YES for n in range(100)}
    bench = Bench(ISSUE)
    make(bench, me=member(4, a=NO, b=NO, **many))
    text = bench.asked[0].messages[1].text
    assert text.index("\nb | unresolved") < text.index("\ntask_0 | ")
    assert f"({102 + 1 - ROWS} more)" in text


def offline(*given, **more):
    bench = Bench(ISSUE)
    make(bench, *given, **more)
    return json.loads(decide(bench.asked[0]).text.partition("\n\n")[2])["proposal"]


def test_the_offline_model_takes_over_what_the_better_relative_changed():
    assert offline() == "Runs end at the step limit: allow more steps."


def test_the_offline_model_takes_over_nothing_that_the_source_has_already():
    changed = {
        **SEED,
        "agent/loop.py": Entry(SEED["agent/loop.py"].data.replace(b"MAX_STEPS = 10", b"MAX_STEPS = 60")),
    }
    me = Member(ME.agent, changed, ME.own, ME.verdicts)
    proposed = offline(me=me)
    assert proposed != "Runs end at the step limit: allow more steps."
    assert proposed in {kind.reason for kind in kinds()}
