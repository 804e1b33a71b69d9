"""The rubric of an evaluation: which notes count, and what a judge cannot change."""

import asyncio

import pytest

from dgm.analysis.objective import metrics_of
from dgm.archive.conversations import thread_of
from dgm.archive.events import AgentNoted
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import AgentId, Entry, Evaluate, Finding, FindingKind, Task, TaskId, Usage, Verdict
from dgm.errors import Infrastructure
from dgm.messages import Message, Reply, Role
from dgm.meta.rubric import METRIC
from dgm.protocols import Grade, SandboxSpec
from dgm.search.prepare import AgentIndex
from dgm.worker.session import Session
from dgm.worker.worker import Worker
from tests.support.agent_place import MANIFEST, Place
from tests.support.runs.builder import RunBuilder

TASK = TaskId("t")
MET_HALF = Reply('{"met": [true, false], "why": "so"}', usage=Usage(1, 40, 2))


class Judged(Place):
    """A gateway that gives one answer to each question, and books its usage to the action."""

    threads = (thread_of([Message(Role.ASSISTANT, "I ran pytest")]),)

    def __init__(self, run, answer):
        super().__init__()
        self.run, self.answer, self.questions = run, answer, []

    async def ask(self, lease, request):
        self.questions.append(request.messages[-1].text)
        if isinstance(self.answer, Exception):
            raise self.answer
        number = len(self.questions) + 1
        RunBuilder(self.run).record_call(self.action, number, "m", "diagnose", self.answer.usage)
        return self.answer


class Graded:
    """A benchmark with one grade."""

    name = version = "graded"

    def __init__(self, findings=()):
        self.findings = findings

    def task(self, task):
        return Task(task, self.name, "p", "python", "/work/t", 60)

    def workspace(self, task):
        return {"a.py": Entry(b"0\n")}

    def again(self, task, grade, tried):
        return ""

    async def grade(self, task, patch, labels):
        return Grade(Verdict.RESOLVED, "ok", 1.0, findings=self.findings, metrics=(("bytes", 3.0),))


@pytest.fixture
def run(tmp_path):
    """A run with agents 0, its child 1 and its child 2."""
    with Run.create(tmp_path / "run", {}) as made:
        for parents in ((), (0,), (0,)):
            source = {"agent.toml": Entry(MANIFEST), "a.py": Entry(b"%d\n" % len(made.tree.agents))}
            RunBuilder(made).bear(source, parents)
        yield made


def evaluate(run, place, benchmark, *, on=True):
    settings = Settings.model_validate({"objective": {"rubric": on}})
    place.action = RunBuilder(run).begin(what := Evaluate(AgentId(1), TASK))
    run.append(AgentNoted(AgentId(1), "too late"))
    RunBuilder(run).record_call(place.action, 1, "m", "solve", Usage(1, 100, 5))
    session = Session(place, place, SandboxSpec("python"), settings.limits)
    worker = Worker(run, session, benchmark, {}, settings, AgentIndex(run))
    return asyncio.run(worker.perform(place.action, what))


def note(run):
    for agent, text in ((0, "it runs the tests"), (2, "of a cousin"), (1, "it is brief")):
        run.append(AgentNoted(AgentId(agent), text))


@pytest.mark.starts_processes
def test_notes_about_the_agent_and_its_ancestors_from_before_the_start_are_judged(run):
    note(run)
    place = Judged(run, MET_HALF)
    done = evaluate(run, place, Graded())
    assert done.metrics == (("bytes", 3.0), ("rubric", 0.5))
    assert "criterion:\n\n1. it runs the tests\n2. it is brief\n\n" in place.questions[0]
    assert "I ran pytest" in place.questions[0]
    assert done.cost.usage == Usage(1, 100, 5)
    assert run.tree.spend_of(place.action) == Usage(2, 140, 7)


@pytest.mark.starts_processes
@pytest.mark.parametrize("answer", [Reply("1.0"), Infrastructure("gone")])
def test_a_judge_that_cannot_be_read_changes_no_verdict(run, answer):
    note(run)
    done = evaluate(run, Judged(run, answer), Graded())
    assert (done.verdict, done.reason, done.metrics) == (Verdict.RESOLVED, "ok", (("bytes", 3.0),))


@pytest.mark.starts_processes
@pytest.mark.parametrize("why", ["off", "without notes", "cheated"])
def test_nobody_is_asked(run, why):
    if why != "without notes":
        note(run)
    findings = (Finding(FindingKind.OTHER_MODEL, "x"),) if why == "cheated" else ()
    place = Judged(run, MET_HALF)
    done = evaluate(run, place, Graded(findings), on=why != "off")
    assert (place.questions, dict(done.metrics).get("rubric")) == ([], None)


def test_the_rubric_is_a_metric_only_if_it_is_measured():
    on = Settings.model_validate({"objective": {"rubric": True}})
    assert metrics_of(object(), on) == {"rubric": METRIC}
    assert metrics_of(object(), Settings()) == {}
