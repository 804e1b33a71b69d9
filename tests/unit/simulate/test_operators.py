"""Worlds with several operators, for the choice among them at equal spend."""

from collections import Counter
from dataclasses import replace
from statistics import fmean

import pytest
from click.testing import CliRunner

from dgm.archive.events import AgentBorn, AgentStillborn
from dgm.cli.simulate import simulate
from dgm.errors import UserError
from dgm.simulate.contenders import contender, contender_settings
from dgm.simulate.fingerprint import fingerprint
from dgm.simulate.operators import NEEDS, mean_evaluation_s, operator_world
from dgm.simulate.recorded import open_recording
from dgm.simulate.study import Cell, Study
from dgm.simulate.trial import Trial, budget_of, perform, world_of

pytestmark = pytest.mark.slow

BANDIT = "hgm+operators.choice=bandit"
SMALL = Trial("hgm", "operators", 3, budget=60)


class Listening:
    """A policy that notes what it asks for."""

    def __init__(self, policy):
        self.name, self.keeps_state = policy.name, True
        self.policy, self.operators, self.events = policy, [], []

    def next(self, tree, rng):
        said = self.policy.next(tree, rng)
        if hasattr(said, "operator"):
            self.operators.append(said.operator)
        return said

    def observe(self, event):
        self.events.append(event.event)
        if self.policy.keeps_state:
            self.policy.observe(event)


def listened(trial):
    policy = Listening(contender(trial.policy, world_of(trial), trial.family).policy)
    return perform(trial, policy), policy


def test_equal_trials_have_equal_results_and_all_operators_work():
    first, policy = listened(SMALL)
    again = perform(SMALL)
    assert replace(first, decision_ms=0, processor_s=0) == replace(again, decision_ms=0, processor_s=0)
    assert set(policy.operators) <= set(NEEDS)
    assert len(set(policy.operators)) >= 3
    born = [event for event in policy.events if isinstance(event, AgentBorn) and event.parents]
    dead = [event for event in policy.events if isinstance(event, AgentStillborn)]
    assert born
    assert all(event.cost.seconds > 0 for event in born)
    assert {event.outcome.stage for event in dead} <= {"check"}


@pytest.mark.parametrize("policy", ["hgm", BANDIT])
def test_trials_of_one_budget_spend_the_same_time(policy):
    trial = replace(SMALL, policy=policy)
    result = perform(trial)
    assert result.ended == "budget spent"
    limit = budget_of(trial).seconds
    assert limit == 60 * mean_evaluation_s()
    assert limit <= result.hours * 3600 < limit * 1.5


def test_laws_differ_from_world_to_world_and_between_operators():
    worlds = [operator_world(seed, 1.0, 0.0) for seed in range(24)]
    best = Counter(max(world.laws, key=lambda name: world.laws[name].step_mean) for world in worlds)
    assert set(best) == set(NEEDS)
    factors = [law.factor for world in worlds for law in world.laws.values()]
    assert min(factors) >= 0.5
    assert max(factors) <= 4.0


def test_a_child_follows_the_law_of_its_operator():
    world = operator_world(1, 1.0, 0.0)
    root = world.root()
    for name, law in world.laws.items():
        children = [world.bred(name, [root], birth) for birth in range(2000)]
        assert fmean(child.broken for child in children) == pytest.approx(law.broken, abs=0.03)
        assert fmean(world.dies(name, child) for child in children) == pytest.approx(law.stillborn, abs=0.05)
        changes = [sum(child.skills) for child in children if sum(child.skills)]
        gained = law.step_mean * (1 - world.dynamics.neutral)
        assert fmean(changes) == pytest.approx(gained + 3 * root.drift, abs=0.15)
    keys = {world.bred(name, [root], 0).key for name in NEEDS}
    assert len(keys) == len(NEEDS)


def test_a_cost_of_expansions_is_their_mean_time_in_evaluations():
    world = operator_world(2, 2.0, 0.0)
    child = [world.bred("module", [world.root()], birth) for birth in range(4000)]
    mean = fmean(world.making_seconds("module", each) for each in child)
    assert mean == pytest.approx(2.0 * world.laws["module"].factor * mean_evaluation_s(), rel=0.1)


def test_a_policy_says_which_operators_and_how():
    said = contender_settings("hgm+operator=invent+operator=module+operators.weights.invent=3")
    assert said.operator_names == ("invent", "module")
    assert said.operators.weights == {"invent": 3}
    assert contender_settings(BANDIT).operator_names == tuple(NEEDS)
    assert perform(replace(SMALL, policy="hgm+operator=module")).expansions > 0


@pytest.mark.parametrize(
    ("policy", "family", "wrong"),
    [
        (BANDIT, "drift", "'operators.choice=bandit' means nothing in the family 'drift'"),
        ("oracle", "operators", "knows nothing of operators"),
        ("hgm+operator=inven", "operators", "unknown operator 'inven' in simulated worlds"),
        ("hgm+operators.retries=1", "operators", "'operators.retries' means nothing in simulated worlds"),
        ("hgm+operator=module+operators.choice=bandit", "operators", "there is one operator only"),
        ("hgm+operator=invent", "operators", "needs more agents than the one"),
    ],
)
def test_what_means_nothing_is_refused_in_one_line(policy, family, wrong):
    for doing in (
        lambda: Study((policy,), (family,), (0,)),
        lambda: perform(Trial(policy, family, 0, budget=5)),
    ):
        with pytest.raises(UserError) as told:
            doing()
        assert wrong in str(told.value)
        assert "\n" not in str(told.value)


def test_time_as_spend_wants_one_worker():
    with pytest.raises(UserError, match="one worker"):
        Study(("hgm",), ("operators",), (0,), (Cell(workers=2),))


def test_virtual_time_is_not_recorded(tmp_path):
    with pytest.raises(UserError, match="spends virtual time"):
        open_recording(tmp_path / "run", SMALL)


def test_a_version_is_of_the_choice_too():
    assert fingerprint("hgm", "operators", 800) != fingerprint(BANDIT, "operators", 800)
    assert fingerprint("hgm", "drift", 800) != fingerprint("hgm", "operators", 800)


def test_the_command_compares_the_bandit_with_equal_weights():
    words = ["--family", "operators", "--policy", BANDIT, "--seeds", "2", "--budget", "20", "--jobs", "1"]
    found = CliRunner().invoke(simulate, words, catch_exceptions=False)
    assert found.exit_code == 0
    assert BANDIT in found.output
    assert "cut short" not in found.output
