"""People and programs are told what expansions took of the budget of evaluations, where they take any."""

import pytest

from dgm.analysis.summary import run_summary
from dgm.cli.progress import panel_lines
from dgm.show.spans import plain_text
from dgm.show.status import status_lines
from dgm.simulation.recorded import open_recording, record
from dgm.simulation.trial import Trial

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def run_of(tmp_path):
    opened = []

    def made(cost):
        trial = Trial("random", "drift", 1, budget=30, expansion_cost=cost)
        run = open_recording(tmp_path / f"cost-{cost}", trial)
        opened.append(run)
        record(run, trial)
        return run

    yield made
    for run in opened:
        run.close()


@pytest.mark.parametrize(("cost", "priced"), [(1.0, ""), (2.0, " (each as 2)")])
def test_what_expansions_took_is_told(run_of, cost, priced):
    run = run_of(cost)
    graded, budget = run.tree.evaluations, run_summary(run)["budget"]
    expansions = budget["expansions"]
    assert budget["expansion_cost"] == cost
    assert graded + cost * expansions == 30
    text = f"{graded} evaluations and {expansions} expansions{priced} took the budget of 30 evaluations"
    assert f"budget       {text}" in map(plain_text, status_lines(run))
    assert f"budget       {text}" in [line.plain for line in panel_lines(run, {}, None)]


def test_nothing_changes_where_expansions_take_nothing(run_of):
    run = run_of(0.0)
    assert not {"expansion_cost", "expansions"} & set(run_summary(run)["budget"])
    lines = [*map(plain_text, status_lines(run)), *(line.plain for line in panel_lines(run, {}, None))]
    assert not any(line.startswith("budget") for line in lines)
