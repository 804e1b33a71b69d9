"""The operator that has one failure diagnosed and lets the agent implement the issue."""

import asyncio
import json

import pytest

from dgm.archive.conversations import thread_of
from dgm.config import EvidenceSettings, OperatorSettings
from dgm.domain import ActionId, Agent, AgentId, Entry, Evaluation, Tally, TaskId, Verdict
from dgm.errors import AgentFault, Infrastructure
from dgm.messages import Message, Reply, RequestRefused, Role
from dgm.meta.context import OperatorContext
from dgm.meta.diagnose import Diagnose
from dgm.meta.prompts import Prompts, load_shipped
from dgm.meta.seeds import read_seed
from dgm.offline import decide
from dgm.offline.improve import applicable, kinds
from dgm.protocols import Brief, Case, Completed, JobKind, Member, ProgramEnd, Work

pytestmark = pytest.mark.slow

SEED = read_seed()
FACTS = dict.fromkeys(
    (
        "resolved",
        "evaluations",
        "failures",
        "step_limit",
        "truncated",
        "wrong",
        "crashed",
        "empty",
        "context",
    ),
    3,
)
ISSUE = {"log_summary": "s", "problem": "p", "proposal": "allow more steps", "general": True}


def case(task, verdict=Verdict.UNRESOLVED, agent=4, action=1, **traces):
    kept = {"patch": b"", "failures": b"", "log": b"", "conversation": b""} | traces
    evaluation = Evaluation(AgentId(agent), TaskId(task), 0, verdict, "1 of 2 tests fail")
    return Case(evaluation, f"mend {task}", kept, ProgramEnd(), ActionId(action))


FAILED = case("lru-ttl", conversation=b"## assistant\n\nDONE", patch=b"+ a patch", failures=b"FAILED test_x")
OTHER = case("second-one", action=2, log=b"step limit reached")
SOLVED = case("solved-one", Verdict.RESOLVED, action=3, conversation=b"how it was solved")


def brief(cases=(FAILED, OTHER, SOLVED), **more):
    agent = Agent(AgentId(4), (AgentId(0),), "c", "self-edit", "", ActionId(7))
    return Brief([Member(agent, SEED, Tally(1, 2))], {"README.md": Entry(b"")}, FACTS, 2, cases=cases, **more)


class Bench:
    """Gives its answers in order; an exception among them is raised. Jobs are done as an agent would."""

    def __init__(self, *answers):
        self.answers, self.asked, self.jobs, self.roles = answers, [], [], []

    async def ask(self, request, role):
        self.asked.append(request)
        self.roles.append(role)
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return Reply(answer if isinstance(answer, str) else json.dumps(answer))

    async def work(self, job):
        self.jobs.append(job)
        said = [thread_of([Message(Role.ASSISTANT, "Rationale: more steps")])]
        return Work({**job.workspace, "new.py": Entry(b"x")}, b"diff", Completed(0, b"log"), said, 3)


def make(bench, told, **settings):
    making = OperatorContext("python", 60.0, Prompts(load_shipped()), OperatorSettings(**settings))
    return asyncio.run(Diagnose(making).make(told, bench))


def test_the_model_is_shown_the_failure_and_the_agent_the_issue():
    bench = Bench(f"Let me think.\n```json\n{json.dumps(ISSUE)}\n```")
    proposal = make(bench, brief(case=ActionId(1), aim="unresolved"))
    system, asked = bench.asked[0].messages
    assert system.text.startswith("You diagnose a coding agent.")
    for shown in (
        "mend lru-ttl",
        "## assistant\n\nDONE",
        "+ a patch",
        "FAILED test_x",
        "--- agent/loop.py",
        "MAX_STEPS",
    ):
        assert shown in asked.text
    assert "second-one" not in asked.text
    assert bench.roles == ["diagnose"]
    (job,) = bench.jobs
    assert (job.kind, job.source, job.workspace) == (JobKind.IMPROVE, SEED, SEED)
    assert "\nProposal: allow more steps\n" in job.problem
    assert "lru-ttl" not in job.problem.partition("Child number")[0]
    assert proposal.rationale == "more steps"
    assert set(proposal.source) == {*SEED, "new.py"}
    assert proposal.log == b"What happened: s\n\nProblem: p\n\nProposal: allow more steps\n\nlog"


@pytest.mark.parametrize(
    ("aim", "words"),
    [
        ("unresolved", "did not solve the following problem"),
        ("empty", "it handed in an empty patch on 3"),
        ("stochastic", "does not do the same twice"),
        ("context", "said more to its model than that can read"),
        ("", "did not solve the following problem"),
    ],
)
def test_each_kind_of_entry_has_words_of_its_own(aim, words):
    bench = Bench(ISSUE)
    make(bench, brief(case=ActionId(2) if aim != "stochastic" else ActionId(0), aim=aim))
    text = bench.asked[0].messages[1].text
    assert words in text
    assert ("how it was solved" in text) is (aim == "stochastic")
    assert ("mend second-one" in text) is (aim != "stochastic")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("no JSON at all", "there is no JSON object"),
        ({"problem": "p", "proposal": "q"}, "has no 'log_summary', 'general'"),
        ({**ISSUE, "general": False}, "the proposal is not general"),
        ({**ISSUE, "general": "perhaps"}, "'general' must be true or false"),
        ({**ISSUE, "proposal": " "}, "'proposal' must be a string"),
        ({**ISSUE, "proposal": "when asked for lru-ttl, add a clock"}, "names 'lru-ttl'"),
        ({**ISSUE, "problem": "solved-one was easier"}, "names 'solved-one'"),
    ],
)
def test_an_answer_that_cannot_be_used_is_sent_back_with_why(wrong, told):
    bench = Bench(wrong, ISSUE)
    make(bench, brief())
    assert told in bench.asked[1].messages[-1].text
    assert len(bench.jobs) == 1


def test_without_a_usable_answer_there_is_no_child():
    bench = Bench("no", "never")
    with pytest.raises(AgentFault, match="no usable answer in 2 tries") as caught:
        make(bench, brief(), retries=1)
    assert (caught.value.stage, bench.jobs) == ("answer", [])


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (RequestRefused("context_length_exceeded", "too long"), AgentFault),
        (RequestRefused("action_limit_exceeded", "spent"), AgentFault),
        (Infrastructure("no provider"), Infrastructure),
    ],
)
def test_a_question_that_is_refused_is_the_childs_fault_and_an_outage_is_not(error, raised):
    with pytest.raises(raised):
        make(Bench(*[error] * 5), brief())


def test_an_agent_that_has_failed_at_nothing_is_not_diagnosed():
    with pytest.raises(AgentFault, match="failed at nothing") as caught:
        make(Bench(), brief([SOLVED, case("x", agent=0)]))
    assert caught.value.stage == "evidence"


def test_the_question_is_bounded_by_the_setting():
    long = case("lru-ttl", conversation=b"word " * 100_000, log=b"line\n" * 100_000)
    bench = Bench(ISSUE)
    making = OperatorContext(
        "python", 60.0, Prompts(load_shipped()), evidence=EvidenceSettings(prompt_chars=20_000)
    )
    asyncio.run(Diagnose(making).make(brief([long]), bench))
    assert 19_000 < len(bench.asked[0].messages[1].text) < 23_000


def offline(*cases, **more):
    """What the offline model proposes for the first failure, and the kinds of change that this may be."""
    bench = Bench(ISSUE)
    make(bench, brief(cases, **more))
    reply = decide(bench.asked[0])
    answer = json.loads(reply.text.partition("\n\n")[2])
    return answer, [kind for kind in kinds() if kind.reason == answer["proposal"]]


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
def test_the_offline_model_says_which_signs_it_saw(traces, sign):
    answer, proposed = offline(case("a-task", **traces, failures=b"FAILED"))
    assert sign in answer["problem"]
    assert ";" not in answer["problem"]
    assert proposed


def test_the_offline_model_proposes_only_what_the_source_has_not():
    for number in range(5):
        _, proposed = offline(case("a-task", failures=b"FAILED %d" % number))
        files = {path: entry.data.decode() for path, entry in SEED.items() if path.endswith(".py")}
        assert set(proposed) & set(applicable(files))


def test_the_offline_models_issue_is_the_same_each_time():
    assert offline(FAILED) == offline(FAILED)
