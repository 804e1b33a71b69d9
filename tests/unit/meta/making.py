"""Briefs, and a workbench that answers as a test says."""

import asyncio
import json

from dgm.archive.conversations import thread_of
from dgm.config import EvidenceSettings, OperatorSettings
from dgm.domain import ActionId, Agent, AgentId, Entry, Evaluation, Tally, TaskId, Verdict
from dgm.messages import Message, Reply, Role
from dgm.meta.operators import OperatorContext
from dgm.meta.prompts import Prompts, load_shipped
from dgm.meta.seeds import read_seed
from dgm.protocols import Brief, Case, Completed, Member, ProgramEnd, Work

SEED = read_seed()
PASSES = Completed(0, b"ok\n")
COUNTS = ("resolved", "evaluations", "failures", "step_limit", "truncated", "wrong", "crashed", "empty")
FACTS = dict(zip((*COUNTS, "context"), range(3, 12), strict=True))
ISSUE = {"log_summary": "s", "problem": "p", "proposal": "allow more steps", "general": True}


def changed(path, old, new, source=SEED):
    """Return the source with one text of a file replaced."""
    data = source[path].data.decode()
    assert data.count(old) == 1
    return {**source, path: Entry(data.replace(old, new).encode())}


MORE_STEPS = changed("agent/loop.py", "MAX_STEPS = 10", "MAX_STEPS = 20")
MANY_STEPS = changed("agent/loop.py", "MAX_STEPS = 10", "MAX_STEPS = 40")
MORE_OUTPUT = changed("agent/tools.py", "OUTPUT_LIMIT = 3000", "OUTPUT_LIMIT = 9000")


def member(number, source=SEED, rationale="", *, own=None, change=b"", **verdicts):
    agent = Agent(AgentId(number), (AgentId(0),), "c", "self-edit", rationale, ActionId(7))
    by_task = {TaskId(task): verdict for task, verdict in verdicts.items()}
    return Member(agent, source, own or Tally(5, 4), by_task, change)


def case(task, verdict=Verdict.UNRESOLVED, agent=4, action=1, **traces):
    traces = {"patch": b"", "failures": b"", "log": b"", "conversation": b""} | traces
    evaluation = Evaluation(AgentId(agent), TaskId(task), 0, verdict, "1 of 2 tests fail")
    return Case(evaluation, f"mend {task}", traces, ProgramEnd(), ActionId(action))


def brief(*parents, evidence=None, **more):
    files = {"README.md": Entry(b"")} if evidence is None else evidence
    return Brief(parents or (member(4),), files, FACTS, more.pop("child_number", 2), **more)


class Bench:
    """Gives answers, checks and work in order, the last ones again and again; exceptions are raised."""

    def __init__(self, *answers, checks=(PASSES,), edit=None, words="Rationale: more steps", done=None):
        self.answers, self.checks = list(answers), list(checks)
        self.edit = edit or (lambda files: {**files, "new.py": Entry(b"x")})
        self.words, self.done = words, done or Completed(0, b"log")
        self.asked, self.roles, self.jobs, self.checked = [], [], [], []

    async def ask(self, request, role):
        self.asked.append(request)
        self.roles.append(role)
        answer = _next(self.answers)
        if isinstance(answer, Reply):
            return answer
        return Reply(answer if isinstance(answer, str) else json.dumps(answer))

    async def check(self, source):
        self.checked.append(source)
        return _next(self.checks)

    async def work(self, job):
        self.jobs.append(job)
        threads = [thread_of([Message(Role.ASSISTANT, self.words)])]
        return Work(self.edit(job.workspace), b"diff", self.done, threads, 3)

    @property
    def questions(self):
        return [request.messages[-1].text for request in self.asked]


def _next(values):
    value = values.pop(0) if len(values) > 1 else values[0]
    if isinstance(value, Exception):
        raise value
    return value


def make(operator, bench, about, *, prompt_chars=60_000, editor=None, **settings):
    """Let an operator, a class, make a child."""
    context = OperatorContext(
        "python",
        60.0,
        Prompts(load_shipped()),
        OperatorSettings.model_validate(settings),
        EvidenceSettings.model_validate({"prompt_chars": prompt_chars}),
        editor,
    )
    return asyncio.run(operator(context).make(about, bench))
