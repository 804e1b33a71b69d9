"""The parent improves itself by its own procedure, with notes that its descendants inherit."""

import pytest

from dgm.domain import Entry
from dgm.errors import AgentFault
from dgm.meta.hyper import NOTES_BYTES, PROCEDURE, Hyper
from tests.unit.meta.making import SEED, Bench, brief, make, member


def noted(size, path="notes/tried.md", source=SEED):
    return {**source, path: Entry(b"x" * size)}


def problem_for(source):
    bench = Bench()
    make(Hyper, bench, brief(member(4, source)))
    return bench.jobs[0].problem


def test_the_parent_works_on_its_source_with_the_archive_and_the_shipped_procedure():
    bench = Bench()
    proposal = make(Hyper, bench, brief())
    assert (bench.jobs[0].source, bench.jobs[0].workspace) == (SEED, SEED)
    assert "`archive.tsv`" in bench.jobs[0].problem
    assert "`budget.json`" in bench.jobs[0].problem
    assert "1. Read the notes, if there are any" in bench.jobs[0].problem
    assert "Run `python3 -m agent --check`; it must pass" in bench.jobs[0].problem
    assert (proposal.rationale, proposal.source["new.py"]) == ("more steps", Entry(b"x"))


def test_an_agents_own_procedure_takes_the_place_of_the_shipped_one():
    problem = problem_for({**SEED, PROCEDURE: Entry(b"Ask the oracle for $5, then $check.\n")})
    assert "in its own words:\n\nAsk the oracle for $5, then $check.\n" in problem
    assert "Read the notes, if there are any" not in problem
    long = problem_for({**SEED, PROCEDURE: Entry(b"a" * 9000 + b"end")})
    assert "[... 1003 bytes left out ...]" in long
    link = problem_for({**SEED, PROCEDURE: Entry(b"/etc/passwd", 0o120000)})
    assert "Read the notes, if there are any" in link


def test_an_agent_that_may_not_have_notes_is_told_of_none():
    assert "The notes have 7 bytes now" in problem_for(noted(7))
    toml = SEED["agent.toml"].data.replace(b'editable = ["**"]', b'editable = ["agent/**"]')
    assert "The notes have" not in problem_for({**SEED, "agent.toml": Entry(toml)})


def test_a_child_with_too_many_notes_is_stillborn_unless_it_inherited_them():
    with pytest.raises(AgentFault, match="24,001 bytes of notes") as fault:
        make(Hyper, Bench(edit=lambda files: noted(NOTES_BYTES + 1, source=files)), brief())
    assert fault.value.stage == "notes"
    make(Hyper, Bench(edit=lambda files: noted(NOTES_BYTES, source=files)), brief())
    make(Hyper, Bench(), brief(member(4, noted(NOTES_BYTES + 1))))
