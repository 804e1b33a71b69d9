"""The operator that makes one agent of two: when a model is asked, for what, and what may come of it."""

import pytest

from dgm.domain import Entry, Prediction, Verdict
from dgm.errors import AgentFault
from dgm.meta.crossover import Crossover
from dgm.meta.seeds import read_seed
from dgm.protocols import Completed, JobKind, Needs
from tests.unit.meta.making import (
    MANY_STEPS,
    MORE_OUTPUT,
    MORE_STEPS,
    PASSES,
    SEED,
    Bench,
    brief,
    make,
    member,
)

pytestmark = pytest.mark.starts_processes

BOTH = {**MORE_STEPS, "agent/tools.py": MORE_OUTPUT["agent/tools.py"]}
WITHOUT = {path: entry for path, entry in SEED.items() if path != "agent/loop.py"}


def cross(first, second, *, edit=lambda files: files, checks=(PASSES,), **more):
    bench = Bench(edit=edit, checks=checks, words="DONE\nRationale: both limits are higher")
    parents = [member(3, first, "Allow $more steps."), member(7, second, "Show more output.")]
    return make(Crossover, bench, brief(*parents, **{"ancestor": SEED, **more})), bench


def test_where_nothing_conflicts_and_the_check_passes_no_agent_works():
    proposal, bench = cross(MORE_STEPS, MORE_OUTPUT)
    assert Crossover.needs == Needs(parents=2)
    assert (proposal.source, bench.checked, bench.jobs) == (BOTH, [BOTH], [])
    assert proposal.rationale == (
        "All that agent 3 (Allow $more steps.) and agent 7 (Show more output.) changed."
    )


def test_a_merge_promises_what_only_the_second_parent_solves():
    yes, no = Verdict.RESOLVED, Verdict.UNRESOLVED
    parents = [member(3, MORE_STEPS, a=no, b=no, c=yes, d=no), member(7, MORE_OUTPUT, a=no, b=yes, c=yes)]
    proposal = make(Crossover, Bench(), brief(*parents, ancestor=SEED))
    assert proposal.predictions == (Prediction("b", "agent 7 solves it"),)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (Completed(1, b"Traceback\nNameError: cut\n"), "exits 1:\n\nTraceback\nNameError: cut"),
        (Completed(124, b"", timed_out=True), "does not end in time:\n\n(no output)"),
    ],
)
def test_a_merge_that_does_not_pass_its_check_goes_to_the_first_parent(check, words):
    proposal, bench = cross(MORE_STEPS, MORE_OUTPUT, checks=[check])
    (job,) = bench.jobs
    assert (job.kind, job.source, job.workspace, job.image) == (JobKind.IMPROVE, MORE_STEPS, BOTH, "python")
    assert f"the merged agent's check {words}" in job.problem
    assert (proposal.source, proposal.rationale, proposal.log) == (BOTH, "both limits are higher", b"log")


def test_what_conflicts_goes_to_the_first_parent_with_markers_and_both_changes():
    proposal, bench = cross(
        MORE_STEPS, MANY_STEPS, edit=lambda files: {**files, "agent/loop.py": MANY_STEPS["agent/loop.py"]}
    )
    (job,) = bench.jobs
    sides = (
        "<<<<<<< first parent\nMAX_STEPS = 20",
        "||||||| ancestor\nMAX_STEPS = 10",
        "=======\nMAX_STEPS = 40",
    )
    assert "\n".join(sides) in job.workspace["agent/loop.py"].data.decode()
    for line in (
        "- `agent/loop.py`: both changed the same lines, in 1 place between lines `<<<<<<< first parent` and ",
        " and `>>>>>>> second parent`; none of these lines may be left\n",
        "What was changed last in the first one: Allow $more steps.",
        "Child number: 2",
    ):
        assert line in job.problem
    assert set(job.evidence) == {"README.md", "merged/first-parent.diff", "merged/second-parent.diff"}
    assert b"+MAX_STEPS = 20" in job.evidence["merged/first-parent.diff"].data
    assert b"+MAX_STEPS = 40" in job.evidence["merged/second-parent.diff"].data
    assert (proposal.source["agent/loop.py"], bench.checked) == (MANY_STEPS["agent/loop.py"], [])


def test_a_place_that_is_left_in_conflict_is_no_child_unless_its_file_is_gone():
    with pytest.raises(AgentFault, match=r"places in conflict were left: agent/loop\.py") as fault:
        cross(MORE_STEPS, MANY_STEPS)
    assert fault.value.stage == "conflict"
    proposal, _ = cross(
        MORE_STEPS, MANY_STEPS, edit=lambda files: {path: files[path] for path in files if "loop" not in path}
    )
    assert "agent/loop.py" not in proposal.source


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ({**SEED, "x.bin": Entry(b"\0a")}, {**SEED, "x.bin": Entry(b"\0b")}, "`x.bin`: both changed it and it is no"),
        ({**SEED, "x": Entry(b"a")}, {**SEED, "x/y": Entry(b"b")}, "`x`: a file of one stands where the other has a"),
        (
            {**SEED, "x": Entry(b"a", 0o120000)},
            {**SEED, "x": Entry(b"b", 0o120000)},
            "`x`: both changed what kind of file it is",
        ),
        (WITHOUT, MORE_STEPS, "`agent/loop.py`: one removed what the other changed"),
    ],
)  # fmt: skip
def test_what_has_no_markers_is_told_too(first, second, words):
    proposal, bench = cross(first, second)
    assert f"- {words}" in bench.jobs[0].problem
    assert proposal.source == first


@pytest.mark.parametrize(
    ("first", "second"), [(SEED, MORE_STEPS), (MORE_STEPS, SEED), (MORE_STEPS, MORE_STEPS)]
)
def test_parents_with_nothing_to_merge_cost_nothing(first, second):
    proposal, bench = cross(first, second)
    assert (proposal.source, bench.checked, bench.jobs) == (MORE_STEPS, [], [])


def test_what_cannot_be_crossed_is_no_child():
    for parents in ([member(1)], [member(1)] * 3):
        with pytest.raises(AgentFault, match="a crossover has two parents") as fault:
            make(Crossover, Bench(), brief(*parents, ancestor=SEED))
        assert fault.value.stage == "parents"
    with pytest.raises(AgentFault, match=r"no agent\.toml"):
        cross(MORE_STEPS, MORE_OUTPUT, checks=[AgentFault("contract", "no agent.toml")])


def test_roots_that_share_most_lines_are_merged_and_keep_the_firsts_contract():
    other = {
        **MORE_OUTPUT,
        "agent.toml": Entry(SEED["agent.toml"].data + b"# another\n"),
        "notes.md": Entry(b"n\n"),
    }
    proposal, bench = cross(MORE_STEPS, other, edit=lambda files: SEED, ancestor=None)
    (job,) = bench.jobs
    assert job.workspace["agent.toml"] == SEED["agent.toml"]
    assert job.workspace["notes.md"] == Entry(b"n\n")
    assert "MAX_STEPS = 20\n=======\nMAX_STEPS = 10\n" in job.workspace[
        "agent/loop.py"
    ].data.decode().replace("||||||| ancestor\n", "")
    assert "The two have no ancestor: the merge kept the lines that both have" in job.problem
    assert "in 1 place between lines" in job.problem
    assert b"+MAX_STEPS = 20" in job.evidence["merged/first-parent.diff"].data
    assert proposal.source == SEED


def test_roots_with_little_in_common_are_crossed_by_the_first_parent_from_both_sources():
    proposal, bench = cross(SEED, read_seed("solid"), edit=lambda files: MORE_STEPS, ancestor=None)
    (job,) = bench.jobs
    assert (job.source, job.workspace, set(job.evidence)) == (SEED, SEED, {"README.md"})
    assert "the second one's source is in the folder `agents/7/source/`" in job.problem
    assert (proposal.source, bench.checked) == (MORE_STEPS, [])
