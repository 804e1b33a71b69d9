"""Every agent that is drawn has a place of its own, below its parent's."""

from random import Random

import pytest

from dgm.archive.events import AgentBorn, Recorded, RunStarted, TaskGraded
from dgm.archive.tree import Tree
from dgm.domain import ActionId, AgentId, Budget, Evaluation, TaskId, Verdict
from dgm.report.layout import place_tree


def grown(agents: int, seed: int, *, crossovers: bool = True) -> Tree:
    """A random tree with verdicts."""
    tree, rng, seq = Tree(), Random(seed), 1
    tree.apply(Recorded(1, 1.0, RunStarted(Budget(), (TaskId("t"),))))
    for agent in range(agents):
        parents = (AgentId(rng.randrange(agent)),) if agent else ()
        if crossovers and agent > 4 and rng.random() < 0.2:
            parents += (AgentId(rng.randrange(agent)),)
        seq += 1
        tree.apply(
            Recorded(seq, 1.0, AgentBorn(ActionId(agent), AgentId(agent), parents, "0" * 40, "op", ""))
        )
        for attempt in range(rng.randrange(4)):
            seq += 1
            done = Evaluation(
                AgentId(agent), TaskId("t"), attempt, rng.choice([Verdict.RESOLVED, Verdict.UNRESOLVED]), ""
            )
            tree.apply(Recorded(seq, 1.0, TaskGraded(ActionId(1000 + seq), done)))
    return tree


@pytest.mark.parametrize("seed", range(10))
def test_nobody_stands_where_another_stands(seed: int) -> None:
    tree = grown(200, seed)
    picture = place_tree(tree, AgentId(150))
    assert sorted(node.agent for node in picture.nodes) == list(range(200))
    assert len({(node.depth, node.row) for node in picture.nodes}) == 200
    rows = {node.agent: node for node in picture.nodes}
    for node in picture.nodes:
        children = [c for c in tree.children(node.agent) if tree.agents[c].parents[0] == node.agent]
        if children:
            ends = [rows[children[0]].row, rows[children[-1]].row]
            assert node.row == sum(ends) / 2
            assert all(rows[child].depth == node.depth + 1 for child in children)
    leaves = sorted(node.row for node in picture.nodes if node.row == int(node.row))
    assert leaves[0] == 0
    assert max(node.row for node in picture.nodes) == picture.rows - 1


@pytest.mark.parametrize("seed", range(5))
def test_of_a_large_tree_the_best_line_and_the_largest_clades_are_drawn(seed: int) -> None:
    tree = grown(400, seed)
    best = AgentId(399)
    picture = place_tree(tree, best, most=50)
    drawn = {node.agent for node in picture.nodes}
    assert set(picture.line) <= drawn
    assert (picture.line[0], picture.line[-1]) == (0, best)
    assert 50 - len(picture.line) <= len(drawn) <= 50
    assert all(tree.agents[agent].parents[0] in drawn for agent in drawn if agent)
    assert picture.left_out == 400 - len(drawn)
    firsts = sum(tree.agents[agent].parents[0] in drawn for agent in range(1, 400) if agent not in drawn)
    assert sum(node.hidden for node in picture.nodes) == firsts
    sizes = sorted((tree.clade(agent.id).n for agent in tree.agents), reverse=True)
    assert sum(tree.clade(agent).n >= sizes[20] for agent in drawn) >= 20


def test_second_parents_are_joined_to_their_children() -> None:
    tree = grown(100, 3)
    expected = {
        (agent.parents[1], agent.id)
        for agent in tree.agents
        if len(agent.parents) > 1 and agent.parents[1] != agent.parents[0]
    }
    assert expected
    assert set(place_tree(tree, AgentId(0)).second) == expected


def test_a_tree_of_one_is_one_node() -> None:
    picture = place_tree(grown(1, 0), AgentId(0))
    assert [(node.agent, node.depth, node.row, node.hidden) for node in picture.nodes] == [(0, 0, 0, 0)]
