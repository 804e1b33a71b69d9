"""The exported tree, read back by networkx, says what the run says; whatever the agents wrote."""

import re
import unicodedata
from datetime import UTC, datetime

import networkx
import pytest

from dgm.analysis.best import best_of
from dgm.archive.run import Run
from dgm.domain import AgentId
from dgm.errors import UserError
from dgm.export.graphs import write_tree
from dgm.show.safe import neutralise

pytestmark = pytest.mark.starts_processes


def read_dot(path):
    """Nodes by number, edges as pairs, texts without the quotes of the language."""
    import pydot

    (graph,) = pydot.graph_from_dot_file(str(path), encoding="utf-8")
    read = networkx.DiGraph()
    for node in graph.get_nodes():
        if node.get_name().isdecimal():
            read.add_node(int(node.get_name()), **plain(node.get_attributes()))
    for edge in graph.get_edges():
        read.add_edge(int(edge.get_source()), int(edge.get_destination()), **plain(edge.get_attributes()))
    return read


def plain(attributes):
    texts = {name: re.sub(r'\\(["\\])', r"\1", text[1:-1]) for name, text in attributes.items()}
    return {name: int(text) if re.fullmatch(r"\d{1,9}", text) else text for name, text in texts.items()}


READERS = {
    ".graphml": lambda path: networkx.read_graphml(path, node_type=int),
    ".gexf": lambda path: networkx.read_gexf(path, node_type=int),
    ".dot": read_dot,
}


@pytest.mark.starts_processes
@pytest.mark.parametrize("suffix", READERS)
def test_ids_edges_and_tallies_are_the_trees(run, tmp_path, suffix) -> None:
    file = tmp_path / f"tree{suffix}"
    assert write_tree(run, file) == len(run.tree.agents)
    graph = READERS[suffix](file)
    tree = run.tree
    assert sorted(graph.nodes) == [agent.id for agent in tree.agents]
    wanted = {(parent, agent.id, n) for agent in tree.agents for n, parent in enumerate(agent.parents)}
    assert {(one, two, edge["order"]) for one, two, edge in graph.edges(data=True)} == wanted
    for agent in tree.agents:
        node, own, clade = graph.nodes[agent.id], tree.own(agent.id), tree.clade(agent.id)
        found = [node[f"{who}_{what}"] for who in ("own", "clade") for what in ("resolved", "unresolved")]
        assert found == [own.resolved, own.unresolved, clade.resolved, clade.unresolved]
        assert node["commit"] == agent.commit
        assert (node["depth"], node["children"]) == (tree.depth(agent.id), len(tree.children(agent.id)))
        assert str(node["best"]).lower() == str(agent.id == best_of(run)).lower()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", READERS)
def test_texts_come_through_as_the_terminal_shows_them(run, tmp_path, suffix) -> None:
    file = tmp_path / f"tree{suffix}"
    write_tree(run, file)
    written = file.read_text(encoding="utf-8")
    allowed = {"\n", "\t"} if suffix != ".dot" else {"\n"}
    assert not {c for c in written if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co"}} - allowed
    graph = READERS[suffix](file)
    for agent in run.tree.agents:
        for name, text in {"rationale": agent.rationale, "operator": agent.operator}.items():
            found = graph.nodes[agent.id].get(name, "")
            assert " ".join(found.replace("\\n", "\n").split()) == " ".join(neutralise(text).split())


def test_the_best_lineage_is_marked(run, tmp_path) -> None:
    write_tree(run, tmp_path / "tree.graphml")
    graph = READERS[".graphml"](tmp_path / "tree.graphml")
    line, wanted = best_of(run), set()
    while True:
        wanted.add(line)
        if not (parents := run.tree.agents[line].parents):
            break
        line = parents[0]
    assert {number for number, node in graph.nodes(data=True) if node["lineage"]} == wanted


def test_aims_and_decisions_are_told(hostile_folder, tmp_path) -> None:
    with Run.open(hostile_folder) as run:
        write_tree(run, tmp_path / "tree.gexf")
        nodes = READERS[".gexf"](tmp_path / "tree.gexf").nodes
        assert "decided" not in nodes[0] or not nodes[0]["decided"]
        assert nodes[1]["decided"].split() == neutralise(nodes[1]["aim"]).split()
        assert run.tree.aim(AgentId(1))


@pytest.mark.parametrize("suffix", READERS)
def test_the_same_run_gives_the_same_bytes_on_any_day(paid_folder, tmp_path, suffix) -> None:
    with Run.open(paid_folder) as run:
        write_tree(run, tmp_path / f"one{suffix}")
        write_tree(run, tmp_path / f"two{suffix}")
        last = max(recorded.at for recorded in run.store.read())
    one = (tmp_path / f"one{suffix}").read_bytes()
    assert one == (tmp_path / f"two{suffix}").read_bytes()
    if suffix == ".gexf":
        assert f'lastmodifieddate="{datetime.fromtimestamp(last, UTC):%Y-%m-%d}"'.encode() in one


def test_names_that_say_no_format_are_refused(run, tmp_path) -> None:
    with pytest.raises(UserError, match=r"end it with \.graphml, \.gexf or \.dot"):
        write_tree(run, tmp_path / "tree.xls")
    (tmp_path / "tree.dot").write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        write_tree(run, tmp_path / "tree.dot")
    assert (tmp_path / "tree.dot").read_text() == "mine"
    with pytest.raises(UserError, match="there is no folder"):
        write_tree(run, tmp_path / "none" / "tree.dot")
    assert [path.name for path in tmp_path.iterdir()] == ["tree.dot"]


def test_a_run_without_agents_has_no_tree(tmp_path) -> None:
    with (
        Run.create(tmp_path / "empty", {"settings": {}}) as run,
        pytest.raises(UserError, match="has no agent yet"),
    ):
        write_tree(run, tmp_path / "tree.dot")
