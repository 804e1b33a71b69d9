"""Attempts at the same tasks side by side become an edit of the agent's procedure."""

import pytest

from dgm.domain import Verdict
from dgm.errors import AgentFault
from dgm.meta.recombine import Recombine, choose_attempts
from tests.unit.meta.making import ISSUE, Bench, brief, case, make, member

YES, NO = Verdict.RESOLVED, Verdict.UNRESOLVED


def ids(groups):
    return [[each.action for each in cases] for cases in groups]


def test_tasks_that_ended_in_both_ways_come_first_and_the_parents_attempt_before_others():
    cases = [
        case("alike", NO, 4, 1),
        case("alike", NO, 9, 2),
        case("single", NO, 4, 3),
        case("foreign", YES, 9, 4),
        case("foreign", NO, 8, 5),
        case("mixed", NO, 8, 6),
        case("mixed", YES, 9, 7),
        case("mixed", NO, 4, 8),
        case("mixed", YES, 7, 9),
    ]
    assert ids(choose_attempts(brief(cases=cases))) == [[8, 7, 9], [1, 2]]
    assert ids(choose_attempts(brief(cases=cases[2:5]))) == [[3]]


def test_the_question_shows_attempts_and_the_agent_implements_the_answer():
    cases = [
        case("mixed", NO, 4, 1, conversation=b"went astray"),
        case("mixed", YES, 9, 2, conversation=b"went straight"),
    ]
    bench = Bench({**ISSUE, "proposal": "reproduce first, then edit"})
    proposal = make(Recombine, bench, brief(cases=cases))
    (question,) = bench.questions
    assert "2 attempts at\n1 of them" in question
    assert "=== problem 1, attempt 1 (agent 4, unresolved): conversation ===\nwent astray" in question
    assert "=== problem 1, attempt 2 (agent 9, resolved): conversation ===\nwent straight" in question
    assert question.count("mend mixed") == 1
    assert "Proposal: reproduce first, then edit" in bench.jobs[0].problem
    assert proposal.log.endswith(b"reproduce first, then edit\n\nlog")


def test_without_an_attempt_of_the_parent_nothing_is_asked():
    bench = Bench(ISSUE)
    with pytest.raises(AgentFault) as fault:
        make(Recombine, bench, brief(member(4), cases=[case("foreign", YES, 9)]))
    assert (fault.value.stage, bench.asked) == ("evidence", [])
