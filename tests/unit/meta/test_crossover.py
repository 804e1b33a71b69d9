"""The operator that makes one agent of two: when a model is asked, for what, and what may come of it."""

import asyncio

import pytest

from dgm.archive.conversations import thread_of
from dgm.domain import Agent, AgentId, Entry
from dgm.errors import AgentFault
from dgm.messages import Message, Role
from dgm.meta.operators import OperatorContext
from dgm.meta.crossover import Crossover
from dgm.meta.prompts import Prompts, load_shipped
from dgm.meta.seeds import read_seed
from dgm.protocols import Brief, Completed, JobKind, Member, Needs, Work

SEED = read_seed()
FITS = Completed(0, b"ok\n")


def changed(path, old, new, source=SEED):
    """The source with one text of a file replaced."""
    data = source[path].data.decode()
    assert data.count(old) == 1
    return {**source, path: Entry(data.replace(old, new).encode())}


MORE_STEPS = changed("agent/loop.py", "MAX_STEPS = 10", "MAX_STEPS = 20")
MANY_STEPS = changed("agent/loop.py", "MAX_STEPS = 10", "MAX_STEPS = 40")
MORE_OUTPUT = changed("agent/tools.py", "OUTPUT_LIMIT = 3000", "OUTPUT_LIMIT = 9000")


class Bench:
    """Checks as it is told, and leaves what ``edit`` makes of the workspace."""

    def __init__(self, checked=FITS, edit=lambda workspace: workspace):
        self.checked, self.edit, self.done = checked, edit, []

    async def check(self, source):
        self.done.append(("check", source))
        if isinstance(self.checked, Exception):
            raise self.checked
        return self.checked

    async def work(self, job):
        self.done.append(("work", job))
        said = [thread_of([Message(Role.ASSISTANT, "DONE\nRationale: both limits are higher")])]
        return Work(self.edit(job.workspace), b"diff", Completed(0, b"log"), said, 3)


def parent(number, source, rationale=""):
    return Member(Agent(AgentId(number), (AgentId(0),), f"c{number}", "self-edit", rationale, number), source)


def crossed(bench, first, second, ancestor=SEED, **more):
    operator = Crossover(OperatorContext("python", 60.0, Prompts(load_shipped())))
    parents = [parent(3, first, "Allow $more steps."), parent(7, second, "Show more output.")]
    return asyncio.run(operator.make(Brief(parents, {}, {}, 2, ancestor=ancestor, **more), bench))


def test_it_needs_two_parents():
    assert Crossover.needs == Needs(parents=2)


def test_where_nothing_conflicts_and_the_check_passes_no_agent_works():
    bench = Bench()
    proposal = crossed(bench, MORE_STEPS, MORE_OUTPUT)
    both = {**MORE_STEPS, "agent/tools.py": MORE_OUTPUT["agent/tools.py"]}
    assert proposal.source == both
    assert bench.done == [("check", both)]
    assert (
        proposal.rationale == "All that agent 3 (Allow $more steps.) and agent 7 (Show more output.) changed."
    )


@pytest.mark.starts_processes
def test_a_merge_that_does_not_pass_its_check_goes_to_the_first_parent():
    bench = Bench(Completed(1, b"Traceback\nNameError: name 'cut' is not defined\n"))
    proposal = crossed(bench, MORE_STEPS, MORE_OUTPUT)
    job = bench.done[1][1]
    both = {**MORE_STEPS, "agent/tools.py": MORE_OUTPUT["agent/tools.py"]}
    assert (job.kind, job.source, job.workspace, job.image) == (JobKind.IMPROVE, MORE_STEPS, both, "python")
    assert (
        "the merged agent's check exits 1:\n\nTraceback\nNameError: name 'cut' is not defined" in job.problem
    )
    assert (proposal.source, proposal.rationale, proposal.log) == (both, "both limits are higher", b"log")


@pytest.mark.starts_processes
def test_a_check_that_does_not_end_is_told_as_that():
    bench = Bench(Completed(124, b"", timed_out=True))
    crossed(bench, MORE_STEPS, MORE_OUTPUT)
    assert "check does not end in time:\n\n(no output)" in bench.done[1][1].problem


def settled(workspace):
    return {**workspace, "agent/loop.py": MANY_STEPS["agent/loop.py"]}


@pytest.mark.starts_processes
def test_what_conflicts_goes_to_the_first_parent_with_markers_and_both_changes():
    bench = Bench(edit=settled)
    proposal = crossed(bench, MORE_STEPS, MANY_STEPS)
    ((kind, job),) = bench.done
    assert kind == "work"
    marked = job.workspace["agent/loop.py"].data.decode()
    assert (
        "<<<<<<< first parent\nMAX_STEPS = 20\n||||||| ancestor\nMAX_STEPS = 10\n=======\nMAX_STEPS = 40\n"
        in marked
    )
    for line in (
        "These places are open:",
        "- `agent/loop.py`: both changed the same lines, in 1 place between lines `<<<<<<< first parent` and ",
        " and `>>>>>>> second parent`; none of these lines may be left\n",
        "What was changed last in the first one: Allow $more steps.",
        "Child number: 2",
        "keep `python3 -m agent --check` working",
    ):
        assert line in job.problem
    assert b"+MAX_STEPS = 20" in job.evidence["merged/first-parent.diff"].data
    assert b"+MAX_STEPS = 40" in job.evidence["merged/second-parent.diff"].data
    assert proposal.source["agent/loop.py"] == MANY_STEPS["agent/loop.py"]


@pytest.mark.starts_processes
def test_evidence_of_the_first_parent_comes_with_the_changes():
    bench = Bench(edit=settled)
    operator = Crossover(OperatorContext("python", 60.0, Prompts(load_shipped())))
    brief = Brief(
        [parent(3, MORE_STEPS), parent(7, MANY_STEPS)], {"README.md": Entry(b"x")}, {}, 0, ancestor=SEED
    )
    asyncio.run(operator.make(brief, bench))
    job = bench.done[0][1]
    assert set(job.evidence) == {"README.md", "merged/first-parent.diff", "merged/second-parent.diff"}
    assert "first one: nothing is said" in job.problem


@pytest.mark.starts_processes
def test_a_place_that_is_left_in_conflict_is_no_child():
    with pytest.raises(AgentFault, match=r"places in conflict were left: agent/loop\.py") as fault:
        crossed(Bench(), MORE_STEPS, MANY_STEPS)
    assert fault.value.stage == "conflict"


@pytest.mark.starts_processes
def test_a_file_that_the_agent_removed_has_no_conflict_left():
    proposal = crossed(
        Bench(edit=lambda files: {path: files[path] for path in files if "loop" not in path}),
        MORE_STEPS,
        MANY_STEPS,
    )
    assert "agent/loop.py" not in proposal.source


@pytest.mark.starts_processes
@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ({"x.bin": Entry(b"\0a")}, {"x.bin": Entry(b"\0b")}, "- `x.bin`: both changed it and it is no text"),
        (
            {"x": Entry(b"a")},
            {"x/y": Entry(b"b")},
            "- `x`: a file of one stands where the other has a folder",
        ),
        (
            {"x": Entry(b"a", 0o120000)},
            {"x": Entry(b"b", 0o120000)},
            "- `x`: both changed what kind of file it is",
        ),
    ],
)
def test_what_has_no_markers_is_told_too(first, second, told):
    bench = Bench()
    proposal = crossed(bench, {**SEED, **first}, {**SEED, **second})
    assert told in bench.done[0][1].problem
    assert proposal.source == {**SEED, **first}


@pytest.mark.starts_processes
def test_what_one_removed_and_the_other_changed_is_told():
    without = {path: entry for path, entry in SEED.items() if path != "agent/loop.py"}
    bench = Bench()
    crossed(bench, without, MORE_STEPS)
    assert "- `agent/loop.py`: one removed what the other changed" in bench.done[0][1].problem


@pytest.mark.parametrize(
    ("first", "second"), [(SEED, MORE_STEPS), (MORE_STEPS, SEED), (MORE_STEPS, MORE_STEPS)]
)
def test_parents_with_nothing_to_merge_cost_nothing(first, second):
    bench = Bench()
    assert crossed(bench, first, second).source == MORE_STEPS
    assert bench.done == []


@pytest.mark.parametrize("parents", [[parent(1, SEED)], [parent(1, SEED)] * 3])
def test_other_numbers_of_parents_are_refused(parents):
    operator = Crossover(OperatorContext("python", 60.0, Prompts(load_shipped())))
    with pytest.raises(AgentFault, match="a crossover has two parents") as fault:
        asyncio.run(operator.make(Brief(parents, {}, {}, 0, ancestor=SEED), Bench()))
    assert fault.value.stage == "parents"


def test_a_fault_of_the_check_is_the_childs():
    with pytest.raises(AgentFault, match=r"no agent\.toml"):
        crossed(Bench(AgentFault("contract", "no agent.toml")), MORE_STEPS, MORE_OUTPUT)
