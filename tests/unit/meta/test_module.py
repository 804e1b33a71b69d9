"""The operator that changes one named part of an agent: what it asks for, and what it does not let pass."""

import asyncio

import pytest

from dgm.archive.conversations import thread_of
from dgm.domain import Agent, AgentId, Entry, TaskId, Verdict
from dgm.errors import AgentFault
from dgm.messages import Message, Role
from dgm.meta.operators import OperatorContext
from dgm.meta.contract import PARTS
from dgm.meta.module import Module, read_statement
from dgm.meta.prompts import Prompts, load_shipped
from dgm.meta.seeds import read_seed
from dgm.offline.improve import apply_edits, kinds
from dgm.protocols import Brief, Completed, JobKind, Member, Needs, Work
from tests.support.offline_talk import IMPROVE, Scaffold
from tests.unit.meta.test_crossover import MORE_OUTPUT, MORE_STEPS, changed
from tests.unit.meta.test_self_edit import FACTS

SEED = read_seed()
SAID = "DONE\nRationale: show more\nGeneral: long output  is cut on every problem"


class Bench:
    """Leaves what it is told to leave."""

    def __init__(self, left=MORE_OUTPUT, said=SAID):
        self.left, self.said, self.jobs = left, said, []

    async def work(self, job):
        self.jobs.append(job)
        return Work(
            self.left,
            b"diff",
            Completed(0, b"log"),
            [thread_of([Message(Role.ASSISTANT, self.said)])],
            3,
        )


def made(bench, aim="context", source=SEED, child_number=2):
    parent = Member(Agent(AgentId(4), (AgentId(0),), "c", "self-edit", "", 7), source)
    operator = Module(OperatorContext("python", 60.0, Prompts(load_shipped())))
    evidence = {"README.md": Entry(b"x")}
    return asyncio.run(operator.make(Brief([parent], evidence, FACTS, child_number, aim=aim), bench))


def test_it_is_aimed_at_one_of_the_named_parts():
    assert Module.needs == Needs(aims=("loop", "tools", "context", "prompts", "memory", "completion"))


def test_the_parent_is_asked_to_change_one_part():
    bench = Bench()
    proposal = made(bench)
    (job,) = bench.jobs
    assert (job.kind, job.source, job.workspace, job.time_limit_s) == (JobKind.IMPROVE, SEED, SEED, 60.0)
    assert set(job.evidence) == {"README.md"}
    assert (proposal.source, proposal.rationale, proposal.log) == (MORE_OUTPUT, "show more", b"log")
    assert proposal.stated == "long output is cut on every problem"
    for line in (
        "Change only the part `context`,",
        "May change:\n- `agent/tools.py::OUTPUT_LIMIT`\n- `agent/tools.py::truncate`\n\n",
        "Child number: 2",
        "step limit reached: 4 of 6",
    ):
        assert line in job.problem
    assert "$" not in job.problem


@pytest.mark.parametrize(
    ("child_number", "part"), [(0, "loop"), (3, "prompts"), (5, "completion"), (6, "loop")]
)
def test_without_an_aim_the_parts_take_turns(child_number, part):
    bench = Bench(SEED)
    made(bench, "", child_number=child_number)
    assert f"Change only the part `{part}`," in bench.jobs[0].problem


@pytest.mark.parametrize(
    ("aim", "left", "places"),
    [
        ("prompts", MORE_OUTPUT, r"the part 'prompts': agent/tools\.py::OUTPUT_LIMIT$"),
        ("context", MORE_STEPS, r"agent/loop\.py::MAX_STEPS$"),
        ("context", changed("agent/prompts.py", "text = ", "said = ", MORE_OUTPUT), "agent/prompts.py::first_mes"),
        ("tools", {path: MORE_OUTPUT[path] for path in SEED if "model" not in path}, r"agent/model\.py::MODEL"),
        ("context", {**MORE_OUTPUT, "README.md": Entry(b"other")}, r"the part 'context': README\.md$"),
    ],
)  # fmt: skip
def test_a_change_of_another_part_is_no_child(aim, left, places):
    with pytest.raises(AgentFault, match=places) as fault:
        made(Bench(left), aim)
    assert fault.value.stage == "protected"


def test_only_some_of_many_places_are_named():
    left = {path: entry for path, entry in SEED.items() if "loop" not in path and "tools" not in path}
    with pytest.raises(AgentFault, match=r"\.\.\.$") as fault:
        made(Bench(left), "prompts")
    assert str(fault.value).count("::") == 5


@pytest.mark.parametrize("said", ["DONE\nRationale: more", "DONE\nGeneral:", "DONE\nGeneral:   \n"])
def test_a_change_without_a_statement_is_no_child(said):
    with pytest.raises(AgentFault, match="not a word on why the change is general") as fault:
        made(Bench(said=said))
    assert fault.value.stage == "statement"


def test_nothing_changed_is_left_to_whoever_vets():
    assert made(Bench(SEED, "DONE")).source == SEED


def test_a_part_that_there_is_not_costs_nothing():
    bench = Bench()
    for aim, message in (
        ("brain", "no part 'brain' of a scaffold"),
        ("prompts", "belongs to the part 'prompts'"),
    ):
        source = {path: SEED[path] for path in ("agent.toml", "agent/loop.py", "agent/tools.py")}
        with pytest.raises(AgentFault, match=message) as fault:
            made(bench, aim, source)
        assert fault.value.stage == "part"
    assert bench.jobs == []


def with_parts(text):
    return {**SEED, "agent.toml": Entry(SEED["agent.toml"].data + text)}


def test_an_agent_may_say_itself_what_its_parts_are():
    source = with_parts(
        b'[agent.parts]\ncontext = ["agent/loop.py::MAX*"]\ntools = ["agent/tools.py", "agent.toml"]\n'
    )
    left = {**source, "agent/loop.py": MORE_STEPS["agent/loop.py"]}
    bench = Bench(left)
    assert made(bench, "context", source).source == left
    assert "May change:\n- `agent/loop.py::MAX_STEPS`\n\n" in bench.jobs[0].problem
    made(bench := Bench(source), "tools", source)
    assert "agent.toml`" not in bench.jobs[0].problem.partition("May change:")[2].partition("\n\n")[0]
    with pytest.raises(AgentFault, match="belongs to the part 'memory'"):
        made(bench, "memory", source)


def test_a_statement_that_names_a_task_is_no_child():
    verdicts = {TaskId("ledger-year"): Verdict.RESOLVED}
    parent = Member(Agent(AgentId(4), (AgentId(0),), "c", "self-edit", "", 7), SEED, verdicts=verdicts)
    operator = Module(OperatorContext("python", 60.0, Prompts(load_shipped())))
    told = Brief([parent], {"README.md": Entry(b"x")}, FACTS, 2, aim="context")
    with pytest.raises(AgentFault, match="names 'ledger-year', of a task") as fault:
        asyncio.run(operator.make(told, Bench(said=f"{SAID}, not only on ledger-year")))
    assert fault.value.stage == "statement"


def test_the_last_statement_counts_and_is_one_short_line():
    said = [
        Message(Role.ASSISTANT, "General: first"),
        Message(Role.USER, "General: not the agent's"),
        Message(Role.ASSISTANT, "DONE. General: second " + "x" * 500),
        Message(Role.ASSISTANT, "bye"),
    ]
    assert read_statement(said).startswith("second xxx")
    assert len(read_statement(said)) == 400
    assert read_statement([]) == ""


class Offline(Bench):
    """The seed's loop on a folder, with the offline model."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    async def work(self, job):
        files = {path: entry.data.decode() for path, entry in job.workspace.items()}
        self.said = Scaffold(self.folder).write(files).work(job.problem, IMPROVE)[-1]
        self.left = {path: Entry((self.folder / path).read_bytes()) for path in job.workspace}
        return await super().work(job)


@pytest.mark.starts_processes
@pytest.mark.parametrize("part", PARTS)
def test_the_offline_model_changes_the_part_it_is_asked_to_change(part, tmp_path):
    proposal = made(Offline(tmp_path), part)
    assert proposal.source != SEED
    assert proposal.stated == "it changes how the agent works on every problem, and speaks of none."
    texts = {path: entry.data.decode() for path, entry in SEED.items()}
    outcomes = [apply_edits(texts, kind.apply(texts)) for kind in kinds()]
    assert {path: entry.data.decode() for path, entry in proposal.source.items()} in outcomes
