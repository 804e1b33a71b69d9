"""What a report says of each operator, and what lists say of aims and second parents."""

import json

import pytest

from dgm.analysis.accounts import operators_of
from dgm.archive.events import (
    ActionStarted,
    AgentStillborn,
    ChildProposed,
    ModelCalled,
    RunStarted,
    TaskGraded,
)
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import (
    ActionId,
    AgentId,
    Born,
    Budget,
    Cost,
    Entry,
    Evaluate,
    Evaluation,
    Expand,
    Stillborn,
    TaskId,
    Usage,
    Verdict,
)
from dgm.render.text import render_tree
from dgm.views.agents import AgentView, LineageView, TreeView
from dgm.views.report import read_operators

pytestmark = pytest.mark.slow

TASKS = tuple(TaskId(f"task-{n}") for n in range(8))
CALL = Usage(1, 1000, 100, 0.02)


class Made:
    """A run of several operators, made by hand."""

    def __init__(self, folder):
        settings = Settings(operator="self-edit+module", model="offline").model_dump(mode="json")
        config = {
            "id": "a" * 16,
            "settings": settings,
            "sandbox": "bubblewrap",
            "versions": {"benchmark": "1"},
        }
        self.run = Run.create(folder, config)
        self.run.append(RunStarted(Budget(), TASKS))
        self.run.append(self.run.birth(Born((), "seed", self.commit(), "the seed"), ActionId(0)))

    def commit(self, *parents):
        content = b"%d" % len(self.run.tree.agents)
        before = [self.run.tree.agents[parent].commit for parent in parents]
        return self.run.repository.commit({"agent.py": Entry(content)}, before)

    def grade(self, agent, *verdicts):
        for task, resolved in zip(TASKS, verdicts, strict=False):
            action = self.run.tree.next_action
            self.run.append(ActionStarted(action, Evaluate(AgentId(agent), task)))
            verdict = Verdict.RESOLVED if resolved else Verdict.UNRESOLVED
            self.run.append(TaskGraded(action, Evaluation(AgentId(agent), task, 0, verdict, "")))

    def start(self, parents, operator, aim="", calls=1):
        action = self.run.tree.next_action
        what = Expand(tuple(map(AgentId, parents)), operator, aim=aim)
        self.run.append(ActionStarted(action, what))
        for number in range(calls):
            self.run.append(ModelCalled(action, number, "m", "improve", CALL))
        return action, what

    def cost(self, **stages):
        """Seconds by stage; None for a skipped one."""
        ran = [
            {"stage": stage, "seconds": s or 0.001, "result": "skipped" if s is None else "passed"}
            for stage, s in stages.items()
        ]
        ran.append({"stage": "probe", "seconds": 9.0, "result": "skipped"})
        return Cost(CALL, 2.0, {"vetting": self.run.traces.put(json.dumps({"stages": ran}).encode())})

    def child(self, parents, operator, aim="", calls=1, **stages):
        action, what = self.start(parents, operator, aim, calls)
        born = Born(what.parents, operator, self.commit(*parents), f"by {operator}", self.cost(**stages))
        self.run.append(self.run.birth(born, action))
        return AgentId(len(self.run.tree.agents) - 1)

    def dies(self, parents, operator, stage, **stages):
        action, what = self.start(parents, operator)
        dead = Stillborn(what.parents, operator, stage, "made up", self.cost(**stages))
        self.run.append(AgentStillborn(action, dead))


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.setenv("DGM_ARCHIVE", str(tmp_path))
    found = Made(tmp_path / "made")
    found.grade(0, 1, 1, 0, 0)
    one = found.child((0,), "module", aim="context", check=1.0, improve=3.0)
    found.grade(one, 1, 1, 1, 0)
    two = found.child((0,), "module", aim="tools", check=2.0)
    found.grade(two, 1, 0, 0, 0, 0)
    found.dies((0,), "module", "check", check=0.5)
    cross = found.child((one, two), "crossover", calls=0, check=1.0)
    found.grade(cross, 1, 1, 1, 1)
    found.child((0,), "self-edit")
    yield found
    found.run.close()


def line(made, operator):
    return next(each for each in operators_of(made.run) if each.operator == operator)


def test_every_expansion_is_counted_once(made):
    found = {each.operator: (each.tried, each.born, each.stillborn) for each in operators_of(made.run)}
    assert found == {
        "module": (3, 2, {"check": 1}),
        "crossover": (1, 1, {}),
        "self-edit": (1, 1, {}),
    }


def test_a_gain_is_against_the_best_parent(made):
    assert line(made, "module").gains == pytest.approx([0.75 - 0.5, 0.2 - 0.5])
    assert line(made, "crossover").gains == pytest.approx([1.0 - 0.75])
    assert (line(made, "module").better, line(made, "crossover").better) == (1, 1)
    gain = line(made, "module").gain
    assert gain.mean == pytest.approx(-0.025)
    assert gain.low < gain.mean < gain.high
    assert line(made, "crossover").gain.low is None


def test_a_child_with_few_verdicts_is_not_judged(made):
    assert (line(made, "self-edit").judged, line(made, "self-edit").gain) == (0, None)
    made.grade(4, 1, 1, 1)
    assert line(made, "self-edit").judged == 0
    made.run.append(ActionStarted(ActionId(99), Evaluate(AgentId(4), TASKS[3])))
    made.run.append(TaskGraded(ActionId(99), Evaluation(AgentId(4), TASKS[3], 0, Verdict.RESOLVED, "")))
    assert line(made, "self-edit").judged == 1


def test_spend_is_that_of_the_model_calls_and_time_that_of_the_expansions(made):
    assert line(made, "module").spend.usd == pytest.approx(0.06)
    assert line(made, "crossover").spend == Usage()
    assert line(made, "module").seconds == pytest.approx(6.0)


def test_a_stage_of_vetting_has_its_mean_time_and_a_skipped_one_none(made):
    stages = line(made, "module").vetting
    assert {name: (took.runs, took.seconds) for name, took in stages.items()} == {
        "check": (3, 3.5),
        "improve": (1, 3.0),
    }


def test_stages_are_in_their_order_although_the_first_child_skipped_one(made):
    made.child((0,), "invent", duplicate=0.1, novelty=None, check=1.0)
    made.child((0,), "invent", duplicate=0.1, novelty=0.5, check=1.0)
    assert list(line(made, "invent").vetting) == ["duplicate", "novelty", "check"]


def test_what_is_under_way_and_what_waits_are_told_apart(made):
    made.start((0,), "self-edit")
    action, what = made.start((0,), "self-edit")
    proposed = Born(what.parents, "self-edit", made.commit(0), "", made.cost())
    made.run.append(ChildProposed(action, proposed))
    found = line(made, "self-edit")
    assert (found.tried, found.born, found.waiting, found.unfinished) == (3, 1, 1, 1)
    made.run.append(made.run.birth(proposed, action))
    found = line(made, "self-edit")
    assert (found.tried, found.born, found.waiting, found.unfinished) == (3, 2, 0, 1)


def test_an_expansion_that_was_performed_again_counts_once(made):
    action, what = made.start((0,), "self-edit")
    made.run.append(ActionStarted(action, what, again=True))
    assert line(made, "self-edit").tried == 2


def test_operators_are_a_view(made):
    module, crossover, _ = read_operators(made.run)
    assert module.gain.mean == pytest.approx(-0.025)
    assert (crossover.gain.mean, crossover.gain.interval) == (0.25, None)
    assert module.vetting["improve"] == {"runs": 1, "seconds": 3.0}


def test_views_have_aims_and_both_parents(made):
    lines = [line.plain for line in render_tree(TreeView.load(made.run))]
    assert any("module:context" in line for line in lines)
    assert any("crossover of 1 and 2" in line for line in lines)
    steps = LineageView.load(made.run, AgentId(3)).lineage
    assert [(step.parents, step.aim) for step in steps] == [((), ""), ((0,), "context"), ((1, 2), "")]


def test_an_agent_says_how_it_was_made(made):
    evidence = made.run.traces.put(json.dumps({f"f{n}": {} for n in range(9)}).encode())
    action, what = made.start((0,), "self-edit")
    cost = made.cost(check=1.5)
    traces = {**cost.traces, "evidence": evidence}
    born = Born(what.parents, "self-edit", made.commit(0), "", Cost(CALL, 2.0, traces))
    made.run.append(made.run.birth(born, action))
    making = AgentView.load(made.run, made.run.tree.agents[5]).making
    assert (making.offered, making.vetting) == (9, {"check": 1.5})
    assert AgentView.load(made.run, made.run.tree.agents[0]).making.vetting == {}
