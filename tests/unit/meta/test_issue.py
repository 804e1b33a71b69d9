"""The operators that have an issue written about an agent, which the agent implements."""

import json

import pytest

from dgm.domain import ActionId, Entry, Verdict
from dgm.errors import AgentFault, Infrastructure
from dgm.messages import RequestRefused
from dgm.meta.issue import ROWS, Compare, Diagnose
from dgm.offline import decide
from dgm.offline.improve import applicable, kinds
from dgm.protocols import JobKind, Needs
from tests.unit.meta.making import ISSUE, SEED, Bench, brief, case, make, member

YES, NO = Verdict.RESOLVED, Verdict.UNRESOLVED
FAILED = case("lru-ttl", conversation=b"## assistant\n\nDONE", patch=b"+ a patch", failures=b"FAILED test_x")
OTHER = case("second-one", action=2, log=b"step limit reached")
SOLVED = case("solved-one", YES, action=3, conversation=b"how it was solved")
CASES = [FAILED, OTHER, SOLVED]


def diagnose(bench, cases=CASES, **more):
    settings = {name: more.pop(name) for name in ("retries", "prompt_chars") if name in more}
    return make(Diagnose, bench, brief(cases=cases, **more), **settings)


def test_model_and_agent_are_told_what_people_say():
    bench = Bench(ISSUE)
    diagnose(bench, notes=b"- agent 4: it never reads the tests\n")
    assert "=== what people say of the agent and its ancestors ===\n- agent 4: it never" in bench.questions[0]
    assert "- `notes.md`: what people say of the agent" in bench.jobs[0].problem
    diagnose(bench)
    assert "people say" not in bench.questions[1] + bench.jobs[1].problem


def test_the_model_is_shown_the_failure_and_the_agent_the_issue():
    bench = Bench(f"Let me think.\n```json\n{json.dumps(ISSUE)}\n```")
    proposal = diagnose(bench, case=ActionId(1), aim="unresolved")
    (question,) = bench.questions
    texts = ("mend lru-ttl", "## assistant\n\nDONE", "+ a patch", "FAILED test_x", "--- agent/loop.py")
    assert all(text in question for text in texts)
    assert "second-one" not in question
    assert (bench.roles, bench.asked[0].form.name) == (["diagnose"], "issue")
    (job,) = bench.jobs
    assert (job.kind, job.source, job.workspace) == (JobKind.IMPROVE, SEED, SEED)
    assert "\nProposal: allow more steps\n" in job.problem
    assert "lru-ttl" not in job.problem.partition("Child number")[0]
    assert (proposal.rationale, set(proposal.source)) == ("more steps", {*SEED, "new.py"})
    assert proposal.log == b"What happened: s\n\nProblem: p\n\nProposal: allow more steps\n\nlog"


@pytest.mark.parametrize(
    ("aim", "words"),
    [
        ("unresolved", "did not solve the following problem"),
        ("empty", "of 5 unsolved problems it handed in an empty patch on 10"),
        ("stochastic", "does not do the same twice"),
        ("context", "said more to its model than that can read"),
        ("", "did not solve the following problem"),
    ],
)
def test_each_kind_of_entry_has_words_of_its_own(aim, words):
    bench = Bench(ISSUE)
    diagnose(bench, case=ActionId(2) if aim != "stochastic" else ActionId(0), aim=aim)
    (question,) = bench.questions
    assert words in question
    assert ("how it was solved" in question) is (aim == "stochastic")
    assert ("mend second-one" in question) is (aim != "stochastic")


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"problem": "p", "proposal": "q"}, "'log_summary'"),
        ({**ISSUE, "general": False}, "the proposal is not general"),
        ({**ISSUE, "proposal": "when asked for lru-ttl, add a clock"}, "names 'lru-ttl'"),
        ({**ISSUE, "problem": "solved-one was easier"}, "names 'solved-one'"),
    ],
)
def test_an_answer_that_cannot_be_used_is_sent_back_with_why(wrong, complaint):
    bench = Bench(wrong, ISSUE)
    diagnose(bench)
    assert complaint in bench.questions[1]
    assert len(bench.jobs) == 1


@pytest.mark.parametrize(
    ("answers", "raised"),
    [
        (["no", "never"], AgentFault),
        ([RequestRefused("context_length_exceeded", "too long")], AgentFault),
        ([RequestRefused("action_limit_exceeded", "spent")], AgentFault),
        ([Infrastructure("no provider")], Infrastructure),
    ],
)
def test_without_a_usable_answer_no_agent_works(answers, raised):
    bench = Bench(*answers)
    with pytest.raises(raised) as caught:
        diagnose(bench, retries=1)
    assert bench.jobs == []
    assert raised is Infrastructure or caught.value.stage == "answer"


def test_what_the_operators_need():
    assert Diagnose.needs == Needs(failures=1, aims=("unresolved", "empty", "stochastic", "context"))
    assert Compare.needs == Needs(failures=1, relatives=3)


@pytest.mark.parametrize("operator", [Diagnose, Compare])
def test_an_agent_that_has_failed_at_nothing_has_no_issue(operator):
    with pytest.raises(AgentFault, match="failed at nothing") as caught:
        make(operator, Bench(ISSUE), brief(cases=[SOLVED, case("x", agent=0)]))
    assert caught.value.stage == "evidence"


def test_the_question_is_bounded_by_the_setting():
    bench = Bench(ISSUE)
    long = case("lru-ttl", conversation=b"word " * 100_000, log=b"line\n" * 100_000)
    diagnose(bench, [long], prompt_chars=20_000)
    assert 19_000 < len(bench.questions[0]) < 23_000


ME = member(4, a=NO, b=NO, c=YES)
GOOD_RATIONALE = "Runs end at the step limit: allow more steps. (more-steps)"
GOOD = member(6, rationale=GOOD_RATIONALE, change=b"+MAX_STEPS = 20", a=NO, b=YES)
BAD = member(5, rationale="Show less.", change=b"+ a bad change", a=NO, c=NO)
COMPARED = [
    case("a", action=1, conversation=b"I failed at a"),
    case("b", action=2, conversation=b"I failed at b", patch=b"my patch of b"),
    case("c", YES, action=3, conversation=b"I solved c"),
    case("b", YES, agent=6, action=4, conversation=b"it solved b so", patch=b"its patch of b"),
    case("c", NO, agent=5, action=5, conversation=b"it failed at c"),
]


def compare(bench, cases=COMPARED, members=(BAD, GOOD), me=ME):
    proposal = make(Compare, bench, brief(me, cases=cases, members=members))
    assert (proposal.rationale, len(bench.jobs)) == ("more steps", 1)
    return bench.questions[0]


def test_what_a_relative_solves_and_the_agent_does_not_is_shown_side_by_side():
    question = compare(Bench(ISSUE))
    assert "\nproblem | agent 4 | agent 5 | agent 6\nb | unresolved | - | resolved\n" in question
    own = ("I failed at b", "my patch of b", "I solved c", "--- agent/loop.py")
    theirs = ("it solved b so", "its patch of b", "+MAX_STEPS = 20")
    assert all(text in question for text in (*own, *theirs))
    assert not any(text in question for text in ("I failed at a", "it failed at c", "+ a bad change"))


def test_an_agent_without_relatives_is_compared_with_itself():
    question = compare(Bench(ISSUE), COMPARED[:3], ())
    assert "I failed at a" in question
    assert "I solved c" in question


def test_of_many_tasks_those_on_which_agents_differ_are_shown():
    question = compare(Bench(ISSUE), me=member(4, a=NO, b=NO, **{f"task_{n}": YES for n in range(100)}))
    assert question.index("\nb | unresolved") < question.index("\ntask_0 | ")
    assert f"({102 + 1 - ROWS} more)" in question


def offline_answer(bench):
    return json.loads(decide(bench.asked[0]).text.partition("\n\n")[2])


@pytest.mark.parametrize(
    ("traces", "sign"),
    [
        ({"log": b"step 10\nstep limit reached", "patch": b"p"}, "it reached its step limit"),
        ({"conversation": b"## tool\n\nx [output truncated]\n", "patch": b"p"}, "output that had been cut"),
        ({"conversation": b"## assistant\n\nDONE", "patch": b"p"}, "it said that it was done"),
        ({"log": b"Traceback (most recent call last):\n  x", "patch": b"p"}, "ended by an error of its own"),
        ({}, "it left no change at all"),
    ],
)
def test_the_offline_model_names_the_sign_and_proposes_what_the_source_has_not(traces, sign):
    bench = Bench(ISSUE)
    diagnose(bench, [case("a-task", **traces, failures=b"FAILED")])
    answer = offline_answer(bench)
    assert sign in answer["problem"]
    assert ";" not in answer["problem"]
    proposed = {kind for kind in kinds() if kind.reason == answer["proposal"]}
    files = {path: entry.data.decode() for path, entry in SEED.items() if path.endswith(".py")}
    assert proposed & set(applicable(files))


def test_the_offline_model_takes_over_what_the_better_relative_changed_unless_it_is_there():
    bench = Bench(ISSUE)
    compare(bench)
    assert offline_answer(bench)["proposal"] == "Runs end at the step limit: allow more steps."
    has_it = {**SEED, "agent/loop.py": Entry(SEED["agent/loop.py"].data.replace(b"= 10", b"= 60", 1))}
    bench = Bench(ISSUE)
    compare(bench, me=member(4, has_it, a=NO, b=NO, c=YES))
    proposal = offline_answer(bench)["proposal"]
    assert proposal != "Runs end at the step limit: allow more steps."
    assert proposal in {kind.reason for kind in kinds()}
