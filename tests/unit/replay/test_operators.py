"""Runs of several operators decide the same again: the choice is a function of the log and the seed."""

from itertools import pairwise

import pytest

from dgm.archive.events import ActionStarted, RunStarted
from dgm.archive.run import Run
from dgm.config import Settings
from dgm.domain import Budget, Expand
from dgm.policies.registry import open_policy
from dgm.protocols import Needs
from dgm.replay.decisions import replay_decisions
from tests.support.runs.replayed import TASKS, MadeUp, killed_session, session

pytestmark = pytest.mark.starts_processes

NEEDS = {
    "self-edit": Needs(),
    "compare": Needs(failures=1, relatives=3),
    "crossover": Needs(parents=2),
    "invent": Needs(archive=4),
    "module": Needs(aims=("loop", "tools", "context")),
}
GROUPS = {"self-edit": Needs(), "share": Needs(failures=1, group=2)}
BANDITS = {"choice": "bandit", "parts": "bandit"}


@pytest.fixture
def run(tmp_path):
    with Run.create(tmp_path / "run", {}) as made:
        yield made


def settings_for(policy, operators, workers=3, needs=NEEDS):
    return Settings(
        seed=5,
        workers=workers,
        operator="+".join(needs),
        operators=operators,
        policy={"name": policy},
        limits={"tries": 2},
    )


def expansions(run):
    return [
        item.event.action
        for item in run.store.read()
        if isinstance(item.event, ActionStarted) and isinstance(item.event.action, Expand)
    ]


def troubled(run, settings, needs=NEEDS):
    """Three sessions, the second one killed."""
    session(run, open_policy(settings, needs), settings, MadeUp(run, trouble=0.2), evaluations=30, agents=12)
    run.append(RunStarted(Budget(evaluations=60, agents=24), TASKS, resumed=True))
    killed = MadeUp(run, seed=1, trouble=0.1)
    killed_session(run, open_policy(settings, needs), settings, killed, after=18)
    last = MadeUp(run, seed=2, trouble=0.1)
    session(run, open_policy(settings, needs), settings, last, evaluations=80, agents=30)


@pytest.mark.parametrize(
    ("policy", "operators"), [("random", BANDITS), ("hgm", {"weights": {"crossover": 2.5}})]
)
def test_a_troubled_run_of_five_operators_decides_the_same_again(run, policy, operators):
    settings = settings_for(policy, operators)
    troubled(run, settings)
    made = expansions(run)
    assert {what.operator for what in made} == set(NEEDS)
    assert all(len(what.parents) == 1 + (what.operator == "crossover") for what in made)
    assert {what.aim for what in made if what.operator == "module"} <= {"loop", "tools", "context"}
    found = replay_decisions(run, open_policy(settings, NEEDS), settings)
    assert (found.differing, found.first) == (0, None)
    assert found.asked > 80


def test_a_troubled_run_of_groups_decides_the_same_again_and_each_member_has_a_child(run):
    settings = settings_for("novelty", {"weights": {"share": 2}}, needs=GROUPS)
    troubled(run, settings, GROUPS)
    groups = [what for what in expansions(run) if what.group]
    complete = [one.group for one, other in pairwise(groups) if one.group == other.group]
    assert len(complete) > 2
    assert all(one.parents[0] == one.group[-1] or other.group == one.group for one, other in pairwise(groups))
    found = replay_decisions(run, open_policy(settings, GROUPS), settings)
    assert (found.differing, found.first) == (0, None)


def test_another_choice_of_operators_leads_to_a_first_difference(run):
    settings = settings_for("random", BANDITS)
    troubled(run, settings)
    fixed = settings_for("random", {})
    found = replay_decisions(run, open_policy(fixed, NEEDS), fixed)
    assert found.differing
    assert found.first.did.parents[0] == found.first.says.parents[0]
    assert (found.first.did.operator, found.first.did.aim) != (
        found.first.says.operator,
        found.first.says.aim,
    )
