"""No word of a hidden test or of a reference fix gets into a prompt or into evidence, whatever the operator is."""

import asyncio
import json

import pytest

from dgm import assemble
from dgm.archive.events import ActionStarted, ModelCalled
from dgm.archive.journal import CallReader
from dgm.archive.run import Run
from dgm.config import BudgetSettings, Settings
from dgm.domain import ActionId, AgentId, Born, Entry, Evaluate, Expand, Verdict
from dgm.meta.operators import BUILTIN, needs_of
from dgm.search.loop import Search
from dgm.search.prepare import RunController, read_brief
from tests.support import marked

pytestmark = [pytest.mark.sandbox, pytest.mark.slow]

PARENTS = {"crossover": (2, 1), "self-edit": (0,), "invent": (0,)}
"""Of the operators that have other parents than agent 1."""
AIMS = {"module": "context"}
TRACES = ("log", "statement", "evidence", "vetting")
"""Of an expansion, beside its conversations."""


class Steps:
    """Does one thing after the other."""

    name = "steps"
    keeps_state = False

    def __init__(self, steps):
        self.steps = steps

    def next(self, tree, rng):
        return self.steps[tree.next_action - 1] if tree.next_action <= len(self.steps) else None


def steps():
    """Some evaluations of each agent, then one expansion by each operator."""
    yield from (Evaluate(AgentId(agent), task) for agent in (0, 1) for task in marked.TASKS)
    for operator in BUILTIN:
        yield Expand(tuple(map(AgentId, PARENTS.get(operator, (1,)))), operator, aim=AIMS.get(operator, ""))


def enter_children(run):
    """Two children of the seed that change the same line, so that what they are crossed to is left to a model."""
    seed = run.tree.agents[0]
    source = run.repository.source(seed.commit)
    for number in (12, 14):
        loop = source["agent/loop.py"].data.replace(b"MAX_STEPS = 10", b"MAX_STEPS = %d" % number)
        commit = run.repository.commit({**source, "agent/loop.py": Entry(loop)}, [seed.commit])
        run.append(run.birth(Born((AgentId(0),), "by hand", commit, "more steps"), ActionId(0)))


async def search(run, settings, parts):
    """Performs all steps; what each expansion was told."""
    async with assemble.open_worker(run, settings, parts) as worker:
        controller = RunController(run, settings, needs_of(worker.operators))
        await Search(controller, Steps(list(steps())), worker, settings).go()
        return {
            what.operator: read_brief(run, parts.benchmark, action, what, settings.evidence)
            for action, what in expansions(run)
        }


def expansions(run):
    starts = (item.event for item in run.store.read() if isinstance(item.event, ActionStarted))
    return [(event.id, event.action) for event in starts if isinstance(event.action, Expand)]


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A run in which every operator has made a child, or tried to, and what each was told."""
    folder = tmp_path_factory.mktemp("marked")
    settings = Settings(
        benchmark=str(marked.make(folder / "suite")),
        model="offline",
        sandbox="bubblewrap",
        workers=1,
        operator="+".join(BUILTIN),
        budget=BudgetSettings(evaluations=100),
        vetting={"probes": 0},
    )
    parts = assemble.parts_of(settings)
    with assemble.create(folder / "run", settings, parts) as run:
        enter_children(run)
        yield run, asyncio.run(search(run, settings, parts))


def hidden(text):
    return [word for word in marked.HIDDEN if word in text]


def asked(run: Run, action: ActionId):
    """Every request of an action as text, tools included."""
    for call in run.store.calls(action):
        request, _ = CallReader(run.store).exchange(call)
        yield call.role, json.dumps([repr(request.messages), repr(request.tools)])


def test_hidden_tests_were_printed_where_patches_are_graded(played):
    run, _ = played
    graded = [item.event.outcome for agent in (0, 1) for item in run.store.graded(AgentId(agent))]
    assert {each.verdict for each in graded} == {Verdict.RESOLVED, Verdict.UNRESOLVED}
    # pytest shows only what a failed test printed.
    for each in [outcome for outcome in graded if outcome.verdict is Verdict.UNRESOLVED]:
        assert hidden(run.traces.get(each.cost.traces["tests"]).decode())
    shown = [run.traces.get(each.cost.traces["failures"]).decode() for each in graded]
    assert any(text.startswith("FAILED tests/test_hidden_gauge.py::") for text in shown)
    assert [hidden(text) for text in shown] == [[]] * len(shown)


def test_no_request_holds_a_word_of_them(played):
    run, _ = played
    seen = set()
    for item in run.store.read():
        if isinstance(item.event, ModelCalled):
            text = repr(CallReader(run.store).exchange(item.event)[0])
            assert hidden(text) == [], f"call {item.event.number} of action {item.event.action}"
            seen |= {item.event.role} if marked.SEEN in text else set()
    assert {"solve", "diagnose"} <= seen


@pytest.mark.parametrize("operator", BUILTIN)
def test_an_operator_was_asked_and_told_and_nothing_of_them_was_in_it(played, operator):
    run, told = played
    action = next(action for action, what in expansions(run) if what.operator == operator)
    brief = told[operator]
    files = {path: entry.data.decode("utf-8", "replace") for path, entry in brief.evidence.items()}
    assert {path: hidden(text) for path, text in files.items() if hidden(text)} == {}
    assert any(marked.SEEN in text for text in files.values())
    assert {"improve", "diagnose"} & {role for role, _ in asked(run, action)}
    event = run.outcome(action).event
    traces = getattr(event, "cost", None) or event.outcome.cost
    for name in TRACES:
        if name in traces.traces:
            assert hidden(run.traces.get(traces.traces[name]).decode("utf-8", "replace")) == []
