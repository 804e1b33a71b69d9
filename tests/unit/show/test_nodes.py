"""The engines or nodes of a search as lines."""

from dataclasses import asdict

from dgm.show.nodes import node_lines

from dgm.archive.live_nodes import NodeState
from dgm.show.spans import plain_text


def lines_of(*nodes):
    return [plain_text(line) for line in node_lines([asdict(node) for node in nodes])]


def test_no_node_is_no_line():
    assert lines_of() == []


def test_the_sum_comes_first_and_then_nodes_with_a_problem():
    good = NodeState("10.0.0.1", 32, 31, 400, 0, 3)
    bad = NodeState("10.0.0.2", 32, 0, 12, 2, 0, "no\x1b[2J answer")
    assert lines_of(good, bad) == [
        "nodes        31 of 64 slots busy on 2 nodes; 1 of them left alone; 2 failures; 3 images made or pulled",
        "             10.0.0.2: 0 of 32 busy, 12 opened, 2 failures; left alone: no\\x1b[2J answer",
        "             10.0.0.1: 31 of 32 busy, 400 opened, 3 images",
    ]


def test_many_nodes_are_counted():
    shown = lines_of(*(NodeState(f"n{number}", 32, 32, 1, 0, 0) for number in range(64)))
    assert shown[0] == "nodes        2,048 of 2,048 slots busy on 64 nodes"
    assert len(shown) == 10
    assert shown[-1].strip() == "and 56 more"
