import json

import pytest

from dgm.domain import AgentId, Evaluate, Verdict
from dgm.errors import UserError
from dgm.views.run import RunReader
from dgm.web.matrix import AGENTS, load_cells, load_tasks
from dgm.web.shared import RunSource
from tests.support.runs.growing import TASKS, Growing


@pytest.fixture
def growing(tmp_path):
    steps = Growing(tmp_path / "run")
    yield steps
    steps.run.close()


@pytest.fixture
def source(growing):
    return RunSource(RunReader(growing.run))


def cells(source, agents):
    return json.loads(load_cells(source, {"agents": agents}))["cells"]


def test_each_task_has_a_letter_for_its_state(growing, source):
    growing.born(0)
    growing.graded(1, 0, good=True)
    growing.graded(1, 1, good=False)
    invalid = growing.begin(Evaluate(AgentId(1), TASKS[2]))
    growing.record_verdict(invalid, 1, TASKS[2], Verdict.INVALID)
    growing.begin(Evaluate(AgentId(1), TASKS[3]))
    assert cells(source, "1,0") == {"0": "........", "1": "ynir...."}


def test_an_invalid_evaluation_that_is_repeated_is_under_way(growing, source):
    action = growing.begin(Evaluate(AgentId(0), TASKS[0]))
    growing.record_verdict(action, 0, TASKS[0], Verdict.INVALID)
    assert cells(source, "0")["0"][0] == "i"
    growing.begin(Evaluate(AgentId(0), TASKS[0]))
    assert cells(source, "0")["0"][0] == "r"


def test_tasks_have_their_tallies_in_the_order_of_the_suite(growing, source):
    growing.born(0)
    growing.graded(0, 1, good=True)
    growing.graded(1, 1, good=False)
    tasks = json.loads(load_tasks(source, {}))["tasks"]
    assert tasks["name"] == list(TASKS)
    assert (tasks["resolved"][:2], tasks["n"][:2]) == ([0, 1], [0, 2])


@pytest.mark.parametrize("agents", ["", "1", "0,x", "-1", ",".join(["0"] * (AGENTS + 1))])
def test_other_agents_are_refused(source, agents):
    with pytest.raises(UserError):
        load_cells(source, {"agents": agents})
