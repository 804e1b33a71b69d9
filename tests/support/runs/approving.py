"""Searches in which children wait for a person, with a worker that makes up what it is asked for."""

import asyncio

from dgm.archive.events import AgentStillborn, ChildProposed, TaskGraded
from dgm.archive.live import APPROVALS, put_answer
from dgm.config import Settings
from dgm.domain import AgentId, Born, Budget, Entry, Evaluate, Evaluation, Expand, Verdict
from dgm.exports.scrub import LocalIdentity as Published
from dgm.search.loop import LoopHooks, Search
from dgm.search.prepare import RunController
from tests.support.runs.builder import RunBuilder, create_run
from tests.support.runs.trees import TASKS

NOBODY = Published("/home/nobody-here", "nobody-here", "no-such-host", "/home/nobody-here/work")


class Plan:
    """A policy: the seed's children first, as many as are wanted, then evaluations of whoever has a task left."""

    name = "plan"
    keeps_state = False

    def __init__(self, children):
        self.children = children

    def next(self, tree, rng):
        if tree.expansions_begun < self.children:
            return Expand((AgentId(0),), "op")
        for agent in tree.agents:
            left = [task for task in TASKS if task not in tree.tried(agent.id)]
            if left:
                return Evaluate(agent.id, left[0])
        return None


class Maker:
    """Performs at once: child n has n in its source, unless the test says which number."""

    def __init__(self, run, numbers=()):
        self.run, self.numbers, self.seen = run, list(numbers), []

    async def perform(self, action, what):
        self.seen.append(action)
        if isinstance(what, Evaluate):
            return Evaluation(what.agent, what.task, 0, Verdict.RESOLVED, "")
        number = self.numbers.pop(0) if self.numbers else action
        source = {"agent.py": Entry(b"%d\n" % number)}
        commit = self.run.repository.commit(
            source, [self.run.tree.agents[parent].commit for parent in what.parents]
        )
        return Born(what.parents, "op", commit, f"child {number}")


def founded(folder):
    """A run with the seed, open to write."""
    made = create_run(folder, {"settings": {}}, Budget(evaluations=12), TASKS)
    RunBuilder(made).bear({"agent.py": Entry(b"seed\n")}, rationale="")
    return made


def settings(**gates):
    return Settings(workers=1, gates={"approve": True, **gates}, vetting={"syntax": False})


def searched(run, children=1, on_event=lambda _: None, numbers=(), now=None, maker=Maker, **gates):
    """One session: how it ended, and the worker."""
    worker = maker(run, numbers)
    around = LoopHooks(on_event, answers_s=0.001, **({"now": now} if now else {}))
    made = Search(RunController(run, settings(**gates)), Plan(children), worker, settings(**gates), around)

    async def go():
        return await asyncio.wait_for(made.go(), 60)

    return asyncio.run(go()), worker


def answering(run, answers, after=4):
    """Answers for a child once so many evaluations are graded since it began to wait."""
    graded = []

    def hear(recorded):
        if isinstance(recorded.event, TaskGraded):
            graded.append(recorded.seq)
        for action in run.tree.waiting:
            if len(graded) >= after and action in answers:
                put_answer(run.folder, action, answers.pop(action))

    return hear


def events(run, *kinds):
    return [recorded.event for recorded in run.store.read() if isinstance(recorded.event, kinds)]


def left_over(run):
    """Files; and refs, of which only those of children that were not born stay."""
    dead = {event.action for event in events(run, AgentStillborn)}
    dead &= {event.action for event in events(run, ChildProposed)}
    refs = run.repository.waiting_refs()
    assert dead <= refs.keys()
    names = sorted(path.name for path in (run.folder / APPROVALS).iterdir())
    return names, {action: commit for action, commit in refs.items() if action not in dead}


class Killed(BaseException):
    """The process dies."""


def killed_at(run, moment, monkeypatch):
    """Dies right before, or right after, the given step of a child's way."""

    def die(*_args, **_kwargs):
        raise Killed

    def die_after(name, owner):
        was = getattr(owner, name)

        def doing(*args, **kwargs):
            was(*args, **kwargs)
            raise Killed

        monkeypatch.setattr(owner, name, doing)

    match moment:
        case "after the ref":
            die_after("name_waiting", run.repository)
        case "after the diff":
            die_after("_write_diff", RunController)
        case "before the answer is recorded":
            monkeypatch.setattr(RunController, "append", die)
        case "after the agent's ref":
            die_after("name", run.repository)
        case "before it is tidied":
            monkeypatch.setattr("dgm.search.prepare.forget_answer", die)
