"""Expansions use the budget of evaluations if the settings say so."""

import pytest

from dgm.archive.run import Run
from dgm.cli.progress import panel_lines
from dgm.simulation.recorded import record_trial
from dgm.simulation.trial import Trial
from dgm.views.run import RunView

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def run_of(tmp_path):
    opened = []

    def record(cost):
        folder = tmp_path / f"cost-{cost}"
        record_trial(folder, Trial("random", "drift", 1, budget=30, expansion_cost=cost))
        opened.append(Run.open(folder))
        return opened[-1]

    yield record
    for run in opened:
        run.close()


@pytest.mark.parametrize(("cost", "priced"), [(1.0, ""), (2.0, " (each as 2)")])
def test_expansions_use_the_budget(run_of, cost, priced):
    run = run_of(cost)
    view = RunView.load(run)
    graded, expansions = view.evaluations.graded, view.expansions
    assert view.expansion_cost == cost
    assert graded + cost * expansions == view.budget["evaluations"].used == 30
    text = f"{graded} evaluations and {expansions} expansions{priced} took the budget of 30 evaluations"
    assert f"budget       {text}" in [line.plain for line in panel_lines(run, {}, None)]


def test_free_expansions_change_nothing(run_of):
    run = run_of(0.0)
    assert RunView.load(run).budget["evaluations"].used == run.tree.evaluations
    assert not any(line.plain.startswith("budget") for line in panel_lines(run, {}, None))
