"""The operator that shows an agent what its group did."""

import pytest

from dgm.domain import AgentId, Verdict
from dgm.errors import AgentFault
from dgm.meta.share import Share
from tests.unit.meta.making import ISSUE, Bench, brief, case, make, member

YES, NO = Verdict.RESOLVED, Verdict.UNRESOLVED
ME = member(4, a=NO, b=NO, c=YES, d=YES)
PARTNER = member(6, rationale="more steps", change=b"+MAX_STEPS = 20", a=NO, b=YES, c=NO)
STRANGER = member(5, rationale="another idea", change=b"+ of a stranger", a=YES)
CASES = [
    case("a", action=1, conversation=b"I failed at a"),
    case("b", action=2, conversation=b"I failed at b"),
    case("d", YES, action=3, conversation=b"I solved d"),
    case("c", YES, action=4, conversation=b"I solved c"),
    case("a", agent=6, action=5, conversation=b"it failed at a"),
    case("c", agent=6, action=6, conversation=b"it failed at c"),
    case("b", YES, agent=6, action=7, conversation=b"it solved b"),
    case("a", YES, agent=5, action=8, conversation=b"a stranger solved a"),
]


def test_the_members_changes_and_the_cases_in_which_they_differ_are_shown():
    bench = Bench(ISSUE)
    proposal = make(
        Share, bench, brief(ME, cases=CASES, members=(PARTNER, STRANGER), group=(AgentId(6), AgentId(4)))
    )
    (question,) = bench.questions
    assert "The group: agent 6, agent 4." in question
    assert "\nproblem | agent 4 | agent 6\nb | unresolved | resolved\n" in question
    contested = ("I failed at b", "I solved c", "it failed at c", "it solved b")
    assert all(text in question for text in (*contested, "+MAX_STEPS = 20", "--- agent/loop.py"))
    others = ("I failed at a", "I solved d", "it failed at a", "stranger")
    assert not any(text in question for text in others)
    (job,) = bench.jobs
    assert "\nProposal: allow more steps\n" in job.problem
    assert proposal.rationale == "more steps"


def test_a_group_without_any_evaluation_has_nothing_to_share():
    with pytest.raises(AgentFault, match="could be shared") as caught:
        make(Share, Bench(ISSUE), brief(ME, members=(PARTNER,), group=(AgentId(4), AgentId(6))))
    assert caught.value.stage == "evidence"
