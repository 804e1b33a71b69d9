"""Worlds with several operators, for the choice among them at equal spend."""

from collections import Counter
from dataclasses import replace
from statistics import fmean

import pytest

from dgm.archive.events import AgentBorn, AgentStillborn
from dgm.errors import UserError
from dgm.simulation.policies import contender_settings, open_contender
from dgm.simulation.study import Study
from dgm.simulation.trial import Trial, budget_of, perform, world_of
from dgm.simulation.world import NEEDS, mean_evaluation_s, open_world

pytestmark = pytest.mark.slow

BANDIT = "hgm+operators.choice=bandit"
SMALL = Trial("hgm", "operators", 3, budget=60)


class Listening:
    """A policy that notes what it asks for."""

    def __init__(self, policy):
        self.name, self.keeps_state = policy.name, True
        self.policy, self.operators, self.events = policy, [], []

    def next(self, tree, rng):
        action = self.policy.next(tree, rng)
        if hasattr(action, "operator"):
            self.operators.append(action.operator)
        return action

    def observe(self, event):
        self.events.append(event.event)
        if self.policy.keeps_state:
            self.policy.observe(event)


def test_several_operators_make_children_and_some_are_stillborn():
    policy = Listening(open_contender(SMALL.policy, world_of(SMALL))[0])
    assert perform(SMALL, policy) == perform(SMALL)
    assert len(set(policy.operators)) >= 3
    born = [event for event in policy.events if isinstance(event, AgentBorn) and event.outcome.parents]
    dead = [event for event in policy.events if isinstance(event, AgentStillborn)]
    assert born
    assert all(event.outcome.cost.seconds > 0 for event in born)
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
    worlds = [open_world("operators", seed) for seed in range(24)]
    best = Counter(max(world.laws, key=lambda name: world.laws[name].dynamics.step_mean) for world in worlds)
    assert set(best) == set(NEEDS)
    factors = [law.factor for world in worlds for law in world.laws.values()]
    assert 0.5 <= min(factors) < max(factors) <= 4.0


def test_a_child_follows_the_law_of_its_operator():
    world = open_world("operators", 1)
    root = world.root()
    for name, law in world.laws.items():
        children = [world.child([root], birth, name) for birth in range(2000)]
        assert fmean(child.broken for child in children) == pytest.approx(law.dynamics.broken, abs=0.03)
        assert fmean(world.stillborn(child, name) for child in children) == pytest.approx(
            law.stillborn, abs=0.05
        )
        changes = [sum(child.skills) for child in children if sum(child.skills)]
        gained = law.dynamics.step_mean * (1 - world.dynamics.neutral)
        assert fmean(changes) == pytest.approx(gained + 3 * root.drift, abs=0.15)
    assert len({world.child([root], 0, name).key for name in NEEDS}) == len(NEEDS)


def test_a_cost_of_expansions_is_their_mean_time_in_evaluations():
    world = open_world("operators", 2, expansion_cost=2.0)
    children = [world.child([world.root()], birth, "module") for birth in range(4000)]
    mean = fmean(world.seconds(child.key, "expand", "module") for child in children)
    assert mean == pytest.approx(2.0 * world.laws["module"].factor * mean_evaluation_s(), rel=0.1)


def test_a_policy_says_which_operators_and_how():
    settings = contender_settings("hgm+operator=invent+operator=module+operators.weights.invent=3")
    assert settings.operator_names == ("invent", "module")
    assert settings.operators.weights == {"invent": 3}
    assert contender_settings(BANDIT).operator_names == tuple(NEEDS)


@pytest.mark.parametrize(
    ("policy", "family"),
    [
        (BANDIT, "drift"),
        ("oracle", "operators"),
        ("hgm+operator=inven", "operators"),
        ("hgm+operators.retries=1", "operators"),
        ("hgm+operator=module+operators.choice=bandit", "operators"),
        ("hgm+operator=invent", "operators"),
        *(
            (text, "drift")
            for text in ("", "nix", "hgm+", "hgm+gate", "hgm+gate=nix", "hgm+colour=red", "hgm+alpha=2")
        ),
        ("lineage+alpha=0.5", "drift"),
        ("hgm+name=dgm", "drift"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused_in_one_line(policy, family):
    with pytest.raises(UserError, match="policy") as caught:
        Study((policy,), (family,), (0,))
    assert "\n" not in str(caught.value)


def test_time_as_spend_needs_one_worker():
    with pytest.raises(UserError, match="workers"):
        Study(("hgm",), ("operators",), (0,), workers=2)
