"""Laws of worlds: answers depend on what is asked for, never on what was asked before."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgm.simulation.families import FAMILIES
from dgm.simulation.world import open_world

pytestmark = pytest.mark.slow

families = st.sampled_from(sorted(FAMILIES))
seeds = st.integers(0, 5)
births = st.lists(st.integers(0, 6), min_size=1, max_size=6)


def descend(world, path):
    agent = world.root()
    for birth in path:
        agent = world.child([agent], birth)
    return agent


def answers(world, path, attempt):
    agent = descend(world, path)
    return (
        agent,
        world.true_score(agent),
        [world.resolves(agent, task, attempt) for task in world.tasks[:8]],
        world.seconds(agent.key, "expand"),
        world.fails(agent.key, 1),
    )


@settings(max_examples=25, deadline=None)
@given(families, seeds, st.lists(st.tuples(births, st.integers(0, 2)), min_size=1, max_size=5), st.randoms())
def test_the_order_of_asking_does_not_matter(family, seed, questions, shuffler):
    world = open_world(family, seed)
    first = {repr(question): answers(world, *question) for question in questions}
    shuffler.shuffle(questions)
    other = open_world(family, seed)
    for question in questions:
        assert answers(other, *question) == first[repr(question)]


@settings(max_examples=25, deadline=None)
@given(families, seeds, births, births)
def test_agents_of_two_lines_are_the_same_only_where_their_births_are(family, seed, one, other):
    world = open_world(family, seed)
    assert (descend(world, one) == descend(world, other)) == (one == other)


@settings(max_examples=15, deadline=None)
@given(families, seeds, births, births, st.integers(0, 3))
def test_a_child_of_two_has_a_key_of_its_own(family, seed, one, other, birth):
    world = open_world(family, seed)
    first, second = descend(world, one), descend(world, other)
    child = world.child([first, second], birth)
    assert child == world.child([first, second], birth)
    assert child.key not in {world.child([first], birth).key, world.child([second], birth).key}


@settings(max_examples=25, deadline=None)
@given(families, seeds, births)
def test_scores_are_shares_and_skills_stay_within_their_limit(family, seed, path):
    world = open_world(family, seed)
    agent = descend(world, path)
    assert 0.0 <= world.true_score(agent) <= 1.0
    assert all(-8.0 <= skill <= 8.0 for skill in agent.skills)
    assert len(agent.key) == 16


@settings(max_examples=4, deadline=None)
@given(families, seeds, births)
def test_asking_for_potentials_changes_no_answer(family, seed, path):
    world = open_world(family, seed)
    before = answers(open_world(family, seed), path, 0)
    first = world.potential(descend(world, path), len(path))
    assert answers(world, path, 0) == before
    assert open_world(family, seed).potential(descend(world, path), len(path)) == first


@settings(max_examples=15, deadline=None)
@given(families, families, seeds)
def test_no_two_worlds_share_an_agent(family, other, seed):
    here, there, later = open_world(family, seed), open_world(other, seed), open_world(family, seed + 1)
    assert (here.root().key == there.root().key) == (family == other)
    assert here.root().key != later.root().key
