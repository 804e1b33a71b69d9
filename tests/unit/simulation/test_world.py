"""Worlds: what a seed gives, and that each family is what it says."""

import pickle
from dataclasses import replace
from itertools import combinations
from statistics import correlation, fmean

import pytest

from dgm.errors import UserError
from dgm.simulation.families import COMMON, FAMILIES, GROUPS
from dgm.simulation.world import FULL, POOL, open_world

pytestmark = pytest.mark.slow

SEEDS = range(30)
FEW = range(12)


def grown(world, size, parent_of):
    """A tree of ``size`` agents: (parent's place, agent); each parent chosen by its place."""
    tree = [(None, world.root())]
    births = [0]
    for number in range(1, size):
        parent = parent_of(number)
        tree.append((parent, world.child([tree[parent][1]], births[parent])))
        births[parent] += 1
        births.append(0)
    return tree


def bushy(number):
    return (number * 7919) % number


def differences(world, size=120):
    """True score of child − parent, wherever both work."""
    tree = grown(world, size, bushy)
    return [
        world.true_score(agent) - world.true_score(tree[parent][1])
        for parent, agent in tree[1:]
        if not agent.broken and not tree[parent][1].broken
    ]


def test_the_families_are_nine_further_ones_and_others_to_tune_on():
    assert {group: len(names) for group, names in GROUPS.items()} == {
        "reported": 9,
        "reserved": 5,
        "tuning": 18,
    }
    assert set(FAMILIES) == {"operators", *(name for names in GROUPS.values() for name in names)}


def test_tuning_worlds_begin_where_no_other_world_does():
    def roots(families):
        return [{**COMMON, **FAMILIES[name].ranges}["root_score"] for name in families]

    for low, high in roots(GROUPS["tuning"]):
        assert all(
            high < least or low > most for least, most in roots((*GROUPS["reported"], *GROUPS["reserved"]))
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_the_root_scores_what_the_family_promises(family):
    low, high = FAMILIES[family].ranges.get("root_score", (0.18, 0.27))
    for seed in SEEDS:
        world = open_world(family, seed)
        assert low - 1e-9 <= world.true_score(world.root()) <= high + 1e-9
        assert world.true_score(world.root()) == pytest.approx(world.parameters["root_score"], abs=1e-9)


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"hopeless"}))
def test_most_edits_do_not_help_and_some_do(family):
    better = fmean(change > 0.001 for seed in FEW for change in differences(open_world(family, seed)))
    assert (
        0.05 < better < 0.56
    )  # low retention, mismatch: a child of a poor parent comes back by half a chance


def test_nothing_ever_helps_in_a_hopeless_world():
    for seed in FEW:
        assert max(differences(open_world("hopeless", seed))) <= 0


def test_even_crossovers_do_not_help_in_a_hopeless_world():
    world = open_world("hopeless", 0, skills=3)
    children = [world.child([world.root()], birth) for birth in range(20)]
    merged = [world.child(list(pair), 0) for pair in combinations(children, 2)]
    assert max(map(world.true_score, merged)) <= world.true_score(world.root())


def test_breakthroughs_are_rare_and_large():
    gains = [change for seed in range(40) for change in differences(open_world("jackpots", seed))]
    assert 0.002 < fmean(gain > 0.07 for gain in gains) < 0.04
    assert max(gains) > 0.15


@pytest.mark.parametrize(("family", "low", "high"), [("broken", 0.18, 0.32), ("half-broken", 0.45, 0.55)])
def test_edits_break_agents_as_often_as_the_family_says(family, low, high):
    worlds = [open_world(family, seed) for seed in range(40)]
    children = [world.child([world.root()], birth).broken for world in worlds for birth in range(100)]
    assert low < fmean(children) < high


def test_broken_agents_resolve_next_to_nothing_and_have_mostly_broken_children():
    world = open_world("broken", 3)
    sick = next(child for birth in range(100) if (child := world.child([world.root()], birth)).broken)
    assert world.true_score(sick) == 0.01
    assert fmean(world.child([sick], birth).broken for birth in range(400)) > 0.5


def test_a_child_keeps_little_where_retention_is_low():
    def kept(family):
        world = open_world(family, 1, broken=0, drift_sd=0)
        good = max((world.child([world.root()], birth) for birth in range(60)), key=world.true_score)
        again = fmean(world.child([good], birth).skills[0] for birth in range(400))
        fresh = fmean(world.child([world.root()], birth).skills[0] for birth in range(400))
        return (again - fresh) / good.skills[0]

    assert 0.2 < kept("low-retention") < 0.5
    assert kept("drift") > 0.9


def test_later_siblings_gain_less():
    def mean_gain(births):
        gains = []
        for seed in range(60):
            world = open_world("siblings", seed)
            gains += [max(0.0, world.child([world.root()], birth).skills[0]) for birth in births]
        return fmean(gains)

    assert mean_gain(range(30, 40)) < 0.2 * mean_gain(range(3))


def test_what_helps_now_hurts_later_where_they_are_mismatched():
    world = open_world("mismatch", 5)
    children = [world.child([world.root()], birth) for birth in range(300)]
    assert correlation([c.skills[0] for c in children], [c.drift for c in children]) < -0.8


def test_a_lineage_keeps_its_drift():
    world = open_world("drift", 2)
    children = [world.child([world.root()], birth) for birth in range(300)]
    steepest = max(children, key=lambda child: child.drift)
    flattest = min(children, key=lambda child: child.drift)

    def mean_step(parent):
        return fmean(world.child([parent], birth).skills[0] for birth in range(300)) - parent.skills[0]

    assert mean_step(steepest) - mean_step(flattest) == pytest.approx(
        steepest.drift - flattest.drift, abs=0.05 + 0.05 * abs(steepest.skills[0] - flattest.skills[0])
    )


def test_a_late_bloomers_worth_shows_in_its_descendants():
    world = open_world("late-bloomers", 4, broken=0)
    children = [world.child([world.root()], birth) for birth in range(200)]
    promising = max(children, key=lambda child: child.reserve)
    idle = {"step_sd": 0, "step_mean": 0, "deferred_sd": 0, "deferred_mean": 0, "neutral": 0, "drift_sd": 0}
    quiet = open_world("late-bloomers", 4, broken=0, retention=1, **idle)
    late = replace(promising, drift=0)
    for _ in range(6):
        late = quiet.child([late], 0)
    assert late.skills[0] - promising.skills[0] > 0.7 * promising.reserve > 0.3


def test_an_edit_that_helps_one_cluster_hurts_another():
    world = open_world("trade-offs", 1, drift_sd=0, retention=1)
    for birth in range(50):
        skills = world.child([world.root()], birth).skills
        moved = sorted(value for value in skills if value)
        assert len(moved) == 2
        assert moved[0] < 0 < moved[1]


def test_a_crossover_takes_the_better_of_each_skill():
    world = open_world(
        "skills", 2, takes_better=1, step_sd=0, step_mean=0, neutral=0, drift_sd=0, retention=1
    )
    plain = open_world("skills", 2)
    one, other = (replace(plain.child([plain.root()], birth), drift=0) for birth in (0, 1))
    child = world.child([one, other], 0)
    assert child.skills == tuple(map(max, zip(one.skills, other.skills, strict=True)))
    assert child.key != world.child([other, one], 0).key


def test_heavy_tails_hold_the_largest_steps():
    def largest_over_median(family):
        steps = sorted(abs(change) for seed in FEW for change in differences(open_world(family, seed)))
        return steps[-5] / steps[len(steps) // 2]

    assert largest_over_median("heavy-tails") > 2 * largest_over_median("broken")


def test_the_search_sees_sixty_of_the_five_hundred_tasks():
    world = open_world("drift", 0)
    assert len(world.tasks) == len(set(world.tasks)) == POOL
    assert len(world.names) == FULL
    assert set(world.tasks) <= set(world.names)


def test_the_pool_is_drawn_without_bias():
    """Over 300 seeds the mean of (pool − full) is within 4 standard errors of 0; false alarm under 1 in 10,000."""
    gaps = []
    for seed in range(300):
        world = open_world("drift", seed)
        chances = world.probabilities(world.root())
        gaps.append(fmean(chances[number] for number in world.pool) - fmean(chances))
    error = (fmean(gap * gap for gap in gaps) / len(gaps)) ** 0.5
    assert abs(fmean(gaps)) < 4 * error
    assert error > 0.001  # pools differ


def test_some_tasks_are_never_resolved_and_some_always():
    world = open_world("drift", 1)
    strong, weak = (world.probabilities(replace(world.root(), skills=(skill,))) for skill in (8.0, -8.0))
    assert 0.01 < fmean(strong < 1e-6) < 0.14
    assert 0.003 < fmean(weak > 1 - 1e-6) < 0.05


def test_every_task_is_as_hard_for_an_agent_of_a_weak_root():
    world = open_world("weak-root", 0)
    chances = world.probabilities(replace(world.root(), skills=(0.7,)))
    assert chances.max() == pytest.approx(chances.min())


def test_one_attempt_resolves_as_often_as_its_probability_says():
    """Over 18,000 answers the mean is within 4 standard errors (0.0125); false alarm under 1 in 10,000."""
    world = open_world("drift", 7)
    agents = [child for n in range(300) if not (child := world.child([world.root()], n)).broken]
    said = fmean(world.resolves(agent, task, 1) for agent in agents for task in world.tasks)
    chances = [world.probabilities(agent)[list(world.pool)].mean() for agent in agents]
    assert said == pytest.approx(fmean(chances), abs=0.0125)


@pytest.mark.parametrize("repeats", [0.0, 0.4, 1.0])
def test_attempts_repeat_as_much_of_their_noise_as_the_world_says(repeats):
    world = open_world("weak-root", 1, repeats=repeats, root_score=0.5)
    root = world.root()
    agents = [root, *(child for n in range(200) if not (child := world.child([root], n)).broken)]
    residuals = [
        [
            world.resolves(agent, task, attempt) - world.true_score(agent)
            for agent in agents
            for task in world.tasks
        ]
        for attempt in (0, 1, 2)
    ]
    for one, other in combinations(residuals, 2):
        assert correlation(one, other) == pytest.approx(repeats, abs=0.04)


def test_potential_is_at_least_the_agents_own_score():
    world = open_world("drift", 0)
    for birth in range(10):
        child = world.child([world.root()], birth)
        assert world.potential(child) >= world.true_score(child) - 1e-9


def test_potential_and_score_part_where_they_are_mismatched():
    world = open_world("mismatch", 5, broken=0)
    children = [world.child([world.root()], birth) for birth in range(40)]
    scores = [world.true_score(child) for child in children]
    potentials = [world.potential(child) for child in children]
    assert correlation(scores, potentials) < 0
    assert correlation([child.drift for child in children], potentials) > 0.5


def test_potential_falls_with_the_children_that_are_already_there_where_siblings_crowd():
    world = open_world("siblings", 0)
    assert world.potential(world.root(), births=40) < world.potential(world.root())


def test_nothing_is_gained_below_a_hopeless_root():
    world = open_world("hopeless", 0)
    assert world.potential(world.root()) == pytest.approx(world.true_score(world.root()), abs=1e-9)


def test_durations_are_log_normal_around_their_median():
    world = open_world("drift", 0)
    expand = sorted(world.seconds(str(n).encode(), "expand") for n in range(999))
    evaluate = sorted(world.seconds(str(n).encode(), "evaluate") for n in range(999))
    assert expand[499] == pytest.approx(900, rel=0.12)
    assert evaluate[499] == pytest.approx(300, rel=0.12)
    assert evaluate[839] / evaluate[499] == pytest.approx(2.01, rel=0.15)  # one standard deviation: exp(0.7)


def test_infrastructure_fails_only_where_it_is_asked_to():
    steady, shaky = open_world("drift", 0), open_world("drift", 0, failures=0.2)
    keys = [str(n).encode() for n in range(1000)]
    assert not any(steady.fails(key, 1) for key in keys)
    first, second = ([shaky.fails(key, number) for key in keys] for number in (1, 2))
    assert fmean(first) == pytest.approx(0.2, abs=0.05)
    assert abs(correlation(first, second)) < 0.15


def test_an_overridden_parameter_leaves_the_others_as_they_were():
    plain, changed = open_world("drift", 3), open_world("drift", 3, broken=0.5)
    assert {**plain.parameters, "broken": 0.5} == changed.parameters


@pytest.mark.parametrize(("family", "wrong"), [("drfit", {}), ("drift", {"brokn": 0.5})])
def test_an_unknown_family_or_parameter_is_refused(family, wrong):
    with pytest.raises(UserError, match=r"drfit|brokn"):
        open_world(family, 0, **wrong)


def test_a_world_can_be_sent_to_another_process():
    world = open_world("skills", 1)
    copy = pickle.loads(pickle.dumps(world))
    child = world.child([world.root()], 0)
    assert copy.child([copy.root()], 0) == child
    assert copy.true_score(child) == world.true_score(child)


def test_answers_are_the_same_on_every_platform():
    """Written down once; keys and outcomes must never change, or old studies could not be repeated."""
    world = open_world("drift", 0)
    child = world.child([world.root()], 0)
    assert world.root().key.hex() == "66291af3ef025521dc7cac4c15c733a6"
    assert child.key.hex() == "f77bf16cb74a79de217a849dc3652608"
    assert round(child.skills[0], 8) == -0.67689292
    assert (
        "".join(str(int(world.resolves(child, task, 0))) for task in world.tasks[:20])
        == "00000100100010000000"
    )
