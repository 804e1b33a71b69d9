"""The exported genealogy, read back by networkx, says what the run says; whatever the agents wrote."""

import unicodedata

import networkx
import pytest

from dgm.analysis.agents import best_of, trace_lineage
from dgm.archive.run import Run
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.exports.graph import write_graph
from dgm.render.safe import neutralise

pytestmark = pytest.mark.starts_processes


@pytest.fixture
def graph(run, tmp_path):
    """The run's genealogy, written and read again."""
    assert write_graph(run, tmp_path / "tree.graphml") == len(run.tree.agents)
    return networkx.read_graphml(tmp_path / "tree.graphml", node_type=int)


def test_ids_edges_and_tallies_are_the_trees(run, graph) -> None:
    tree = run.tree
    assert sorted(graph.nodes) == [agent.id for agent in tree.agents]
    wanted = {(parent, agent.id, n) for agent in tree.agents for n, parent in enumerate(agent.parents)}
    assert {(parent, child, edge["order"]) for parent, child, edge in graph.edges(data=True)} == wanted
    for agent in tree.agents:
        node, own, clade = graph.nodes[agent.id], tree.own(agent.id), tree.clade(agent.id)
        tallies = [node[f"{who}_{what}"] for who in ("own", "clade") for what in ("resolved", "unresolved")]
        assert tallies == [own.resolved, own.unresolved, clade.resolved, clade.unresolved]
        assert node["commit"] == agent.commit
        assert (node["depth"], node["children"]) == (tree.depth(agent.id), len(tree.children(agent.id)))
        assert node["best"] == (agent.id == best_of(run))
    line = {agent.id for agent in trace_lineage(tree, best_of(run))}
    assert {number for number, node in graph.nodes(data=True) if node["lineage"]} == line


def test_texts_come_through_as_the_terminal_shows_them(run, graph, tmp_path) -> None:
    text = (tmp_path / "tree.graphml").read_text(encoding="utf-8")
    assert not {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co"}} - {"\n", "\t"}
    for agent in run.tree.agents:
        for name, value in {"rationale": agent.rationale, "operator": agent.operator}.items():
            assert graph.nodes[agent.id].get(name, "").split() == neutralise(value).split()


def test_aims_and_decisions_are_in_it(hostile_folder, tmp_path) -> None:
    with Run.open(hostile_folder) as run:
        write_graph(run, tmp_path / "tree.graphml")
        aim = run.tree.aim(AgentId(1))
    nodes = networkx.read_graphml(tmp_path / "tree.graphml", node_type=int).nodes
    assert "decided" not in nodes[0]
    assert aim
    assert nodes[1]["decided"].split() == neutralise(nodes[1]["aim"]).split()


def test_the_same_run_gives_the_same_bytes(paid_folder, tmp_path) -> None:
    with Run.open(paid_folder) as run:
        write_graph(run, tmp_path / "one.graphml")
        write_graph(run, tmp_path / "two.graphml")
    assert (tmp_path / "one.graphml").read_bytes() == (tmp_path / "two.graphml").read_bytes()


def test_a_run_without_agents_has_no_tree(tmp_path) -> None:
    with (
        Run.create(tmp_path / "empty", {"settings": {}}) as run,
        pytest.raises(UserError, match="has no agent yet"),
    ):
        write_graph(run, tmp_path / "tree.graphml")
